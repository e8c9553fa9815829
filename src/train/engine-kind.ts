/** A kind of engine: how settings name it, and how it is started. One kind a file; `engines.ts` lists them. */
import { z } from "zod";
import type { ModelSource } from "../engine/embedded/core.js";
import type { Engine } from "../engine/engine.js";
import { KEY_VARIABLE } from "../engine/sampler/wire.js";

/** The settings of an engine beside its name. */
export const engineSettings = {
  threads: z.int().min(1).optional().describe("threads of this process; default: one per core"),
  model: z
    .string()
    .optional()
    .describe("name of the model on an engine server; needed where it has several"),
  loraRank: z
    .int()
    .min(0)
    .default(0)
    .describe("train low-rank adapters of this rank on an engine server; 0: all weights"),
  copy: z
    .boolean()
    .default(false)
    .describe("copy an engine server's checkpoints into the run folder, weights and all"),
  sampler: z
    .url({ protocol: /^https?$/ })
    .refine((url) => !URL.canParse(url) || new URL(url).password === "", {
      error: `must not carry a password; put the key into ${KEY_VARIABLE}`,
    })
    .optional()
    .describe("http://… of a vLLM or SGLang server that samples in the engine's place"),
  samplerModel: z
    .string()
    .optional()
    .describe("name of the sampler's model; needed where it has several"),
  samplerFolder: z
    .string()
    .min(1)
    .optional()
    .describe("folder that the sampler sees too, for new weights; default: for temporary files"),
};

/** The settings of an engine, its name included. */
export interface EngineOptions extends z.output<z.ZodObject<typeof engineSettings>> {
  readonly name: string;
}

/** What a model starts from: as for the embedded engine, or the model that a server has. */
export type EngineModel = ModelSource | { readonly served: true };

/** What else an engine is told. */
export interface OpenEngineOptions {
  readonly seed?: number;
  readonly valueHead?: boolean;
  readonly onNotice?: (message: string) => void;
}

/** A kind of engine. */
export interface EngineKind {
  /** The names that mean it. */
  readonly name: z.ZodType<string>;
  /** What help says of them. */
  readonly help: string;
  /** Whether it is a server, which may have a model of its own and keeps checkpoints where it runs. */
  readonly isRemote: boolean;
  /** Starts it with this model; what it cannot do is refused. */
  open(options: EngineOptions, model: EngineModel, more: OpenEngineOptions): Promise<Engine>;
}
