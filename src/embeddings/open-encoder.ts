/** The sentence encoder that settings name: a folder, a model of the hub, an npm package or an endpoint. */
import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { UserError } from "../errors.js";
import { type CachedEncoder, cacheVectors } from "./cache.js";
import type { Encoder } from "./encoder.js";
import { openEndpointEncoder } from "./endpoint-encoder.js";
import { fetchHubEncoder } from "./hub.js";
import { findNpmEncoder, MINILM_PACKAGE } from "./npm-encoder.js";

/** Settings of an encoder: types, defaults, help and errors come from here. */
export const encoderOptions = z
  .strictObject({
    from: z
      .string()
      .min(1)
      .default("minilm")
      .describe(
        "a folder in Hugging Face's ONNX layout, hub:OWNER/NAME, npm:PACKAGE, an endpoint's address; minilm: npm or the hub",
      ),
    model: z.string().optional().describe("the model's name, at an endpoint"),
    apiKeyVariable: z
      .string()
      .default("OPENAI_API_KEY")
      .describe("environment variable with an endpoint's key"),
    dimension: z
      .int()
      .min(1)
      .optional()
      .describe("what its vectors must have; another number is an error"),
    threads: z.int().min(1).default(1).describe("threads of an encoder in this process"),
    cache: z
      .string()
      .optional()
      .describe("folder for encoders and their vectors; default ~/.cache/pawl"),
  })
  .prefault({});

/** Settings of an encoder. */
export type EncoderOptions = z.output<typeof encoderOptions>;

const MINILM_ON_HUB = "Xenova/all-MiniLM-L6-v2";

/** Finds, opens and checks an encoder, and keeps its vectors on disk. */
export async function openEncoder(
  options: EncoderOptions,
  onNotice: (message: string) => void = () => undefined,
): Promise<CachedEncoder> {
  const cache =
    options.cache ?? join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "pawl");
  const encoder = await open(options, cache, onNotice);
  if (options.dimension !== undefined && encoder.dimension !== options.dimension) {
    throw new UserError(
      `the encoder ${encoder.name} gives vectors of ${encoder.dimension} numbers, expected ${options.dimension}: it is another model than the one meant. Name that one, or change dimension.`,
    );
  }
  return cacheVectors(encoder, join(cache, "vectors"));
}

async function open(
  options: EncoderOptions,
  cache: string,
  onNotice: (message: string) => void,
): Promise<Encoder> {
  const { from, model } = options;
  if (/^https?:/i.test(from)) {
    if (model === undefined) {
      throw new UserError(`the model at ${from} is not named: set the encoder's model.`);
    }
    return openEndpointEncoder({ url: from, model, key: process.env[options.apiKeyVariable] });
  }
  const folder = await locate(from, cache, onNotice);
  // Loaded when needed: endpoints need no ONNX Runtime.
  const { openOnnxEncoder } = await import("./onnx-encoder.js");
  return openOnnxEncoder({ folder, threads: options.threads });
}

async function locate(
  from: string,
  cache: string,
  onNotice: (message: string) => void,
): Promise<string> {
  if (from.startsWith("hub:")) {
    return fetchHubEncoder({ model: from.slice("hub:".length), cache, onNotice });
  }
  if (from.startsWith("npm:")) {
    return findNpmEncoder({ package: from.slice("npm:".length), cache, onNotice });
  }
  if (from !== "minilm") return from;
  try {
    return await findNpmEncoder({ package: MINILM_PACKAGE, cache, onNotice });
  } catch (error) {
    onNotice((error as Error).message);
    return fetchHubEncoder({ model: MINILM_ON_HUB, cache, onNotice });
  }
}
