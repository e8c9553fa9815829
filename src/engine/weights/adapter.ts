/**
 * Low-rank adapters next to a checkpoint's weights, in PEFT's layout; they are merged when read.
 *
 * Engine servers train them (`engine.loraRank`) and keep the base weights unchanged: W + scale · B
 * A, with B in `lora_B.weight` and A in `lora_A.weight`.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { EngineError } from "../engine.js";
import { openSafetensors, readTensor } from "./safetensors.js";
import type { TensorSpec } from "./tensor-names.js";

/** The files of an adapter. */
export const ADAPTER_FILES = ["adapter_model.safetensors", "adapter_config.json"] as const;
const [WEIGHTS_FILE, CONFIG_FILE] = ADAPTER_FILES;
const PREFIX = "base_model.model.";

const nothing = z.union([
  z.literal(false),
  z.null(),
  z.array(z.never()).length(0),
  z.record(z.string(), z.never()),
]);
/** Options that would change the arithmetic and are not supported must be absent. */
const fileSchema = z.looseObject({
  peft_type: z.literal("LORA"),
  r: z.int().min(1),
  lora_alpha: z.number(),
  bias: z.literal("none").default("none"),
  use_rslora: z.boolean().nullish(),
  use_dora: nothing.optional(),
  fan_in_fan_out: nothing.optional(),
  lora_bias: nothing.optional(),
  modules_to_save: nothing.optional(),
  rank_pattern: nothing.optional(),
  alpha_pattern: nothing.optional(),
});

/** An adapter, ready to be merged into the weights. */
export interface Adapter {
  /** Adds the adapter's change of a tensor to its numbers, in place. */
  addTo(name: string, data: Float32Array): Promise<void>;
}

/** The adapter of a checkpoint folder with these tensors; undefined if there is none. */
export async function openAdapter(
  folder: string,
  tensors: readonly TensorSpec[],
): Promise<Adapter | undefined> {
  const file = join(folder, CONFIG_FILE);
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new EngineError(`${file}: cannot be read: ${error.message}`, { cause: error });
  });
  if (text === undefined) return undefined;
  const { r: rank, lora_alpha: alpha, use_rslora } = parseConfig(text, file);
  const source = await openSafetensors(join(folder, WEIGHTS_FILE));
  const shapes = new Map<string, readonly number[]>();
  for (const { name, shape } of tensors) {
    const [down, up] = pairOf(name);
    if (shape.length !== 2) continue;
    shapes.set(down, [rank, shape[1]!]).set(up, [shape[0]!, rank]);
  }
  for (const [name, { shape }] of source.tensors) {
    const expected = shapes.get(name);
    if (expected === undefined)
      throw new EngineError(`${source.file}: ${name} belongs to no tensor of this model`);
    if (`${shape}` !== `${expected}`)
      throw new EngineError(
        `${source.file}: ${name} has shape [${shape}]; expected [${expected}] for rank ${rank}`,
      );
  }
  const scale = alpha / (use_rslora === true ? Math.sqrt(rank) : rank);
  return {
    async addTo(name, data) {
      const [down, up] = pairOf(name);
      if (!source.tensors.has(down)) return;
      addProduct(data, await readTensor(source, up), await readTensor(source, down), rank, scale);
    },
  };
}

function parseConfig(text: string, file: string): z.output<typeof fileSchema> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new EngineError(`${file}: not valid JSON: ${(error as Error).message}`, { cause: error });
  }
  const parsed = fileSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new EngineError(
    `${file}: ${issue!.path.join(".")} is not as expected of a plain LoRA adapter (${issue!.message}); merge it with PEFT, and open the merged model`,
  );
}

/** The names of A and B of a tensor. */
function pairOf(name: string): readonly [down: string, up: string] {
  const stem = PREFIX + name.replace(/\.weight$/, "");
  return [`${stem}.lora_A.weight`, `${stem}.lora_B.weight`];
}

/** data += scale · up · down, with data [outputs, inputs], up [outputs, rank], down [rank, inputs]. */
function addProduct(
  data: Float32Array,
  up: Float32Array,
  down: Float32Array,
  rank: number,
  scale: number,
): void {
  const inputs = down.length / rank;
  const row = new Float64Array(inputs);
  for (let output = 0; output < data.length / inputs; output++) {
    row.fill(0);
    for (let k = 0; k < rank; k++) {
      const factor = scale * up[output * rank + k]!;
      for (let i = 0; i < inputs; i++) row[i]! += factor * down[k * inputs + i]!;
    }
    for (let i = 0; i < inputs; i++) data[output * inputs + i]! += row[i]!;
  }
}
