/**
 * Low-rank adapters (LoRA) of a model's projections: which projections, and the tensors of each.
 *
 * An adapted projection computes with W + alpha / rank · B A. Only A (`lora_A`) and B (`lora_B`) are
 * trained. Names are PEFT's.
 */
import { createRandom } from "@pawl/core/random.js";
import type { ModelConfig } from "./model-config.js";
import { type TensorSpec, tensorSpecs, VALUE_HEAD } from "./tensor-names.js";

/** The projections that can be adapted, by PEFT's names. */
export const LORA_TARGETS = [
  "q_proj",
  "k_proj",
  "v_proj",
  "o_proj",
  "gate_proj",
  "up_proj",
  "down_proj",
] as const;
type LoraTarget = (typeof LORA_TARGETS)[number];

/** The adapter's strength if none is given: the engine server's. */
export const LORA_ALPHA = 32;

export interface LoraOptions {
  readonly rank: number;
  readonly alpha: number;
  readonly targets: readonly LoraTarget[];
}

/** The factor of B A. */
export function loraScale({ rank, alpha }: LoraOptions): number {
  return alpha / rank;
}

/** A projection's weight [outputs, inputs] and its adapter. */
export interface AdaptedTensor {
  readonly name: string;
  /** A: [rank, inputs]. */
  readonly down: TensorSpec;
  /** B: [outputs, rank]. */
  readonly up: TensorSpec;
}

/** The projections that have an adapter, in the order the model uses them. */
export function adaptedTensors(
  config: ModelConfig,
  { rank, targets }: LoraOptions,
): readonly AdaptedTensor[] {
  return tensorSpecs(config).flatMap(({ name, shape }) => {
    if (!targets.some((target) => name.endsWith(`.${target}.weight`))) return [];
    const [down, up] = adapterNames(name);
    return [
      {
        name,
        down: { name: down, shape: [rank, shape[1]!] },
        up: { name: up, shape: [shape[0]!, rank] },
      },
    ];
  });
}

/** The names of A and B of a tensor. */
export function adapterNames(name: string): readonly [down: string, up: string] {
  const stem = `base_model.model.${name.replace(/\.weight$/, "")}`;
  return [`${stem}.lora_A.weight`, `${stem}.lora_B.weight`];
}

/** The tensors that are trained: all of them, or those of the adapters and the value head. */
export function trainedSpecs(
  config: ModelConfig,
  valueHead: boolean,
  lora?: LoraOptions,
): readonly TensorSpec[] {
  const specs = tensorSpecs(config).filter(({ name }) => valueHead || name !== VALUE_HEAD);
  if (lora === undefined) return specs;
  const adapters = adaptedTensors(config, lora).flatMap(({ down, up }) => [down, up]);
  return [...adapters, ...specs.filter(({ name }) => name === VALUE_HEAD)];
}

/** All tensors: the model's and those of its adapters. */
export function modelSpecs(config: ModelConfig, lora?: LoraOptions): readonly TensorSpec[] {
  const adapters = lora === undefined ? [] : trainedSpecs(config, false, lora);
  return [...tensorSpecs(config), ...adapters];
}

/** An adapter that changes nothing yet: A is normal with deviation 1 / √inputs, B is zero. */
export function initialAdapter(
  config: ModelConfig,
  lora: LoraOptions,
  seed: number,
): ReadonlyMap<string, Float32Array> {
  const random = createRandom(seed);
  const zeros = ({ shape }: TensorSpec) => new Float32Array(shape[0]! * shape[1]!);
  return new Map(
    adaptedTensors(config, lora).flatMap(({ down, up }) => {
      const deviation = 1 / Math.sqrt(down.shape[1]!);
      return [
        [down.name, zeros(down).map(() => deviation * random.normal())] as const,
        [up.name, zeros(up)] as const,
      ];
    }),
  );
}
