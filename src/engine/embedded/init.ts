/** Models from scratch: preset sizes, and initial weights from a seed. */

import { createRandom } from "../../random.js";
import type { ModelConfig } from "../weights/model-config.js";
import { tensorSpecs } from "../weights/tensor-names.js";

/** Preset sizes: about 0.6, 4 and 20 million parameters with a vocabulary of 512. */
export const PRESETS = {
  tiny: { hiddenSize: 160, layers: 2, heads: 4, mlpSize: 320 },
  small: { hiddenSize: 256, layers: 5, heads: 4, mlpSize: 704 },
  base: { hiddenSize: 512, layers: 6, heads: 8, mlpSize: 1408 },
} as const;

export type PresetName = keyof typeof PRESETS;

/** Whether a model of this name is made from scratch. */
export const isPreset = (name: unknown): name is PresetName =>
  typeof name === "string" && Object.hasOwn(PRESETS, name);

/** The configuration of a preset size with a given vocabulary. */
export function presetConfig(
  preset: PresetName,
  vocabularySize: number,
  maxContext = 1024,
): ModelConfig {
  const { hiddenSize, layers, heads, mlpSize } = PRESETS[preset];
  return {
    vocabularySize,
    hiddenSize,
    layers,
    heads,
    kvHeads: heads,
    headSize: hiddenSize / heads,
    mlpSize,
    maxContext,
    ropeTheta: 10_000,
    normEps: 1e-6,
    tiedEmbeddings: true,
    qkvBias: false,
  };
}

/**
 * Standard deviation of the initial weights times √width: 0.02 at a width of 600, larger in narrow
 * models.
 */
const DEVIATION = 0.5;

/**
 * Initial weights: normal with standard deviation 0.5 / √width, smaller by √(2 layers) in the
 * projections that end a residual branch, so that the residual stream keeps its scale; norms are
 * one, biases and the value head zero. Keys start equal to queries, so that a token first attends
 * to tokens like itself (mimetic initialisation: Trockman & Kolter 2023, arXiv 2305.09828): the
 * model then learns sooner, and with every seed, to recognise the object it was asked for.
 */
export function initialWeights(
  config: ModelConfig,
  seed: number,
): ReadonlyMap<string, Float32Array> {
  const random = createRandom(seed);
  const weights = new Map(
    tensorSpecs(config).map(({ name, shape }): [string, Float32Array] => {
      const data = new Float32Array(shape.reduce((product, size) => product * size, 1));
      if (name.endsWith("norm.weight")) return [name, data.fill(config.normsPlusOne ? 0 : 1)];
      if (name.endsWith(".bias") || shape[0] === 1) return [name, data];
      const ends = /o_proj|down_proj/.test(name);
      const scale = DEVIATION / Math.sqrt(config.hiddenSize);
      const deviation = ends ? scale / Math.sqrt(2 * config.layers) : scale;
      for (let i = 0; i < data.length; i++) data[i] = deviation * random.normal();
      return [name, data];
    }),
  );
  for (const [name, data] of weights)
    if (name.endsWith("k_proj.weight"))
      data.set(weights.get(name.replace("k_proj", "q_proj"))!.subarray(0, data.length));
  return weights;
}
