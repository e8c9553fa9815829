/** The updates whose cost is shown: by parameters, context, episodes and environment. */

import { WHOLE } from "./machines.js";
import { SHAPES, type ShapeName } from "./shape.js";
import type { Texts } from "./texts.js";
import type { Update } from "./update.js";

/** An update and what it shows; `world` is what a step of its environment takes, if that is the point. */
export interface Row {
  readonly machine: "2 cores" | "H200";
  readonly what: string;
  readonly update: Update;
  readonly world?: number;
}

/** Like the default run's: short turns of one long sequence, no reference. */
const household: Update = {
  shape: "tiny",
  episodes: 128,
  steps: 20,
  prompt: 43,
  response: 6,
  observation: 11,
  prompts: "continued",
  reference: false,
  minibatch: 512,
};

/** The paper's recipe for ALFWorld, as docs/gpu.md measured it. */
export const paper: Update = {
  shape: "Qwen2.5-1.5B",
  ...WHOLE,
  prompts: "apart",
  reference: true,
  minibatch: 256,
};

const SIZES = Object.keys(SHAPES) as ShapeName[];
const CONTEXTS = [512, 1024, 2048, 4096, 8192];
const EPISODES = [32, 128, 512, 2048];
const number = (value: number): string => value.toLocaleString("en");

/** Episodes of one sequence, with as many turns as the context has room for. */
const ofContext = (context: number): Update => ({
  ...household,
  steps: Math.floor((context - household.prompt) / (household.response + household.observation)),
});

/** A prompt that leaves room for the response and the observation. */
const withPrompt = (context: number): Update => ({
  ...paper,
  prompt: context - paper.response - paper.observation,
});

/** All updates, with those of environments by the lengths of their texts. */
export function rowsOf(texts: readonly Texts[]): readonly Row[] {
  const cores = (what: string, update: Update): Row => ({ machine: "2 cores", what, update });
  const gpu = (what: string, update: Update): Row => ({ machine: "H200", what, update });
  return [
    ...SIZES.slice(0, 4).map((shape) => cores("parameters", { ...household, shape })),
    ...CONTEXTS.map((context) => cores(`context ${number(context)}`, ofContext(context))),
    ...EPISODES.map((episodes) =>
      cores(`${number(episodes)} episodes`, { ...household, episodes }),
    ),
    ...SIZES.slice(3).map((shape) => gpu("parameters", { ...paper, shape })),
    ...CONTEXTS.map((context) => gpu(`context ${number(context)}`, withPrompt(context))),
    ...EPISODES.map((episodes) => gpu(`${number(episodes)} episodes`, { ...paper, episodes })),
    ...texts.map(({ environment, prompt, observation, steps, step: world }) => ({
      ...gpu(environment, { ...paper, prompt, observation, steps }),
      world,
    })),
  ];
}
