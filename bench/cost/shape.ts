/** The models that costs are computed for: the presets, and pretrained models by their shape. */
import { PRESETS, type PresetName, presetConfig } from "../../src/engine/embedded/init.js";
import type { ModelConfig } from "../../src/engine/weights/model-config.js";
import { tensorSpecs } from "../../src/engine/weights/tensor-names.js";

/** The words of a tokenizer that is made for a model from scratch; about what the presets get. */
const VOCABULARY = 512;
export const MAX_CONTEXT = 8192;

const pretrained = (
  sizes: Pick<ModelConfig, "vocabularySize" | "hiddenSize" | "layers" | "heads" | "kvHeads"> & {
    readonly mlpSize: number;
    readonly qkvBias: boolean;
  },
): ModelConfig => ({
  ...sizes,
  headSize: sizes.hiddenSize / sizes.heads,
  maxContext: MAX_CONTEXT,
  ropeTheta: 1e6,
  normEps: 1e-6,
  tiedEmbeddings: true,
});

const presets = Object.fromEntries(
  Object.keys(PRESETS).map((name) => [
    name,
    presetConfig(name as PresetName, VOCABULARY, MAX_CONTEXT),
  ]),
) as Readonly<Record<PresetName, ModelConfig>>;

/** Shapes by name. */
export const SHAPES = {
  ...presets,
  "SmolLM2-135M": pretrained({
    vocabularySize: 49_152,
    hiddenSize: 576,
    layers: 30,
    heads: 9,
    kvHeads: 3,
    mlpSize: 1536,
    qkvBias: false,
  }),
  "Qwen2.5-0.5B": pretrained({
    vocabularySize: 151_936,
    hiddenSize: 896,
    layers: 24,
    heads: 14,
    kvHeads: 2,
    mlpSize: 4864,
    qkvBias: true,
  }),
  "Qwen2.5-1.5B": pretrained({
    vocabularySize: 151_936,
    hiddenSize: 1536,
    layers: 28,
    heads: 12,
    kvHeads: 2,
    mlpSize: 8960,
    qkvBias: true,
  }),
} as const;

export type ShapeName = keyof typeof SHAPES;

/** Counted once: fitting a machine asks thousands of times. */
const counted = new WeakMap<ModelConfig, number>();

/** All of a model's weights. */
export function parametersOf(shape: ModelConfig): number {
  const known = counted.get(shape);
  if (known !== undefined) return known;
  const sizes = tensorSpecs(shape)
    .filter((spec) => !spec.optional)
    .map((spec) => spec.shape.reduce((product, size) => product * size, 1));
  const parameters = sizes.reduce((sum, size) => sum + size, 0);
  counted.set(shape, parameters);
  return parameters;
}
