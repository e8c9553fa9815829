/**
 * Low-rank adapters next to a checkpoint's weights, in PEFT's layout.
 *
 * Training with adapters (`engine.loraRank`) keeps the base weights unchanged: W + scale · B A, with
 * B in `lora_B.weight` and A in `lora_A.weight`. Other readers get them merged.
 */
import { join, resolve } from "node:path";
import { EngineError } from "@pawl/core/engine/engine.js";
import { writeFileAtomically, writeFully } from "@pawl/core/files/atomic-file.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { z } from "zod";
import { adaptedTensors, adapterNames, LORA_TARGETS, type LoraOptions } from "./lora.js";
import type { ModelConfig } from "./model-config.js";
import { openSafetensors, readTensor, writeSafetensors } from "./safetensors.js";
import type { TensorSpec } from "./tensor-names.js";

/** The files of an adapter. */
export const ADAPTER_FILES = ["adapter_model.safetensors", "adapter_config.json"] as const;
const [WEIGHTS_FILE, CONFIG_FILE] = ADAPTER_FILES;

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

/** An adapter, ready to be merged into the weights or trained on. */
export interface Adapter {
  readonly file: string;
  readonly rank: number;
  /** The factor of B A, times the rank. */
  readonly alpha: number;
  /** The names of its tensors. */
  readonly names: readonly string[];
  read(name: string): Promise<Float32Array>;
  /** Adds the adapter's change of a tensor to its numbers, in place. */
  addTo(name: string, data: Float32Array): Promise<void>;
}

/** The adapter of a checkpoint folder with these tensors; undefined if there is none. */
export async function openAdapter(
  folder: string,
  tensors: readonly TensorSpec[],
): Promise<Adapter | undefined> {
  const file = join(folder, CONFIG_FILE);
  let text: string;
  try {
    text = readRegularText(file);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw new EngineError(`${file}: cannot be read: ${message}`, { cause: error });
  }
  const { r: rank, lora_alpha: alpha, use_rslora } = parseConfig(text, file);
  const source = await openSafetensors(join(folder, WEIGHTS_FILE));
  const shapes = new Map<string, readonly number[]>();
  for (const { name, shape } of tensors) {
    const [down, up] = adapterNames(name);
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
    file: source.file,
    rank,
    alpha: scale * rank,
    names: [...source.tensors.keys()],
    read: (name) => readTensor(source, name),
    async addTo(name, data) {
      const [down, up] = adapterNames(name);
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

/**
 * The adapter's tensors, to go on training it with these options; rejects options that are not its
 * own.
 */
export async function readAdapter(
  adapter: Adapter,
  config: ModelConfig,
  lora: LoraOptions,
): Promise<ReadonlyMap<string, Float32Array>> {
  const differs = (what: string, has: unknown, asked: unknown, setting: string) =>
    new EngineError(
      `${adapter.file}: the adapter has ${what} ${has}, but ${asked} was requested; set ${setting} to ${has}, or merge it first (pawl export)`,
    );
  if (adapter.rank !== lora.rank) throw differs("rank", adapter.rank, lora.rank, "engine.loraRank");
  if (Math.abs(adapter.alpha - lora.alpha) > 1e-6 * lora.alpha)
    throw differs("alpha", adapter.alpha, lora.alpha, "engine.loraAlpha");
  const names = adaptedTensors(config, lora).flatMap(({ down, up }) => [down.name, up.name]);
  const targets = targetsOf(adapter.names);
  if (names.length !== adapter.names.length || names.some((name) => !adapter.names.includes(name)))
    throw differs("targets", targets, targetsOf(names), "engine.loraTargets");
  const data = new Map<string, Float32Array>();
  for (const name of names) data.set(name, await adapter.read(name));
  return data;
}

const targetsOf = (names: readonly string[]): string =>
  LORA_TARGETS.filter((target) => names.some((name) => name.includes(`.${target}.`))).join(",");

/** Writes an adapter next to the weights it belongs to, for Pawl and for PEFT. */
export async function writeAdapter(
  folder: string,
  config: ModelConfig,
  lora: LoraOptions,
  data: ReadonlyMap<string, Float32Array>,
): Promise<void> {
  const specs = adaptedTensors(config, lora).flatMap(({ down, up }) => [down, up]);
  await writeSafetensors(
    join(folder, WEIGHTS_FILE),
    new Map(specs.map(({ name, shape }) => [name, { shape, data: data.get(name)! }])),
  );
  const json = {
    peft_type: "LORA",
    task_type: "CAUSAL_LM",
    base_model_name_or_path: resolve(folder),
    r: lora.rank,
    lora_alpha: lora.alpha,
    lora_dropout: 0,
    target_modules: lora.targets,
    bias: "none",
    fan_in_fan_out: false,
    modules_to_save: null,
    inference_mode: true,
    use_dora: false,
    use_rslora: false,
  };
  const text = Buffer.from(`${JSON.stringify(json, null, 2)}\n`);
  await writeFileAtomically(join(folder, CONFIG_FILE), (handle) => writeFully(handle, text));
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
