/**
 * A kind of engine: its settings and how it is started. One file per kind; `engines.ts` lists them.
 */

import type { Engine } from "@pawl/core/engine/engine.js";
import { address, folder } from "@pawl/core/trust/reach.js";
import type { ModelSource } from "@pawl/engine-cpu/core.js";
import { KEY_VARIABLE } from "@pawl/engine-remote/sampler/wire.js";
import { LORA_ALPHA, LORA_TARGETS } from "@pawl/models/weights/lora.js";
import { z } from "zod";

/** The settings of an engine besides its address. */
export const engineSettings = {
  threads: z
    .int()
    .min(1)
    .optional()
    .describe("CPU threads of the embedded engine (default: one per core)"),
  model: z.string().optional().describe("model name on the engine server, if it has several"),
  loraRank: z.int().min(0).default(0).describe("LoRA rank (0: train all weights)"),
  loraAlpha: z
    .number()
    .positive()
    .optional()
    .describe(
      `the adapters' factor times the rank, in the embedded engine (default: ${LORA_ALPHA})`,
    ),
  loraTargets: z
    .array(z.enum(LORA_TARGETS))
    .min(1)
    .optional()
    .describe("projections that have LoRA adapters, in the embedded engine (default: all)"),
  copy: z
    .boolean()
    .default(false)
    .describe("copy the engine server's checkpoints, weights included, into the run folder"),
  sampler: address(
    z
      .url({ protocol: /^https?$/ })
      .refine((url) => !URL.canParse(url) || new URL(url).password === "", {
        error: `must not carry a password; put the key into ${KEY_VARIABLE}`,
      }),
    KEY_VARIABLE,
  )
    .optional()
    .describe(
      "URL of a second engine server, or of a vLLM or SGLang server, to sample with instead of the engine",
    ),
  samplerModel: z
    .string()
    .optional()
    .describe("model name on the sampling server, if it has several"),
  samplerFolder: folder(z.string().min(1))
    .optional()
    .describe(
      "folder for new weights, which vLLM or SGLang must see under the same path (default: the temporary folder)",
    ),
};

/** The settings of an engine, its address included. */
export interface EngineOptions extends z.output<z.ZodObject<typeof engineSettings>> {
  /** `embedded`, or a URL. */
  readonly address: string;
}

/** What a model starts from: as for the embedded engine, or the server's own model. */
export type EngineModel = ModelSource | { readonly served: true };

/** Further options for starting an engine. */
export interface OpenEngineOptions {
  readonly seed?: number;
  readonly valueHead?: boolean;
  readonly onNotice?: (message: string) => void;
}

/** A kind of engine. */
export interface EngineKind {
  /** The addresses that select it. */
  readonly address: z.ZodType<string>;
  /** Its addresses, in help texts. */
  readonly help: string;
  /** Whether it is a server, which may have its own model and keeps checkpoints where it runs. */
  readonly isRemote: boolean;
  /** Why no model can be opened there only to be measured; undefined if one can. */
  notMeasured?(options: EngineOptions): Promise<string | undefined>;
  /** Starts it with this model; rejects what it cannot do. */
  open(options: EngineOptions, model: EngineModel, more: OpenEngineOptions): Promise<Engine>;
}
