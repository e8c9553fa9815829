/**
 * What `pawl try` and its page train: the agent that comes with the package, in the world of `quick`.
 *
 * One is watched there, in a browser that computes four times as slowly: so the run is short, it
 * measures on one split, and nothing beside what is learnt.
 */
import { quick } from "./quick.js";

export const trial = {
  ...quick,
  model: { start: "examples/try-start" },
  warmStart: { episodes: 0 },
  updates: 16,
  optimizer: { ...quick.optimizer, warmup: 2 },
  gradients: { every: 0 },
  evaluation: { ...quick.evaluation, every: 8, splits: ["valid_unseen"], tasks: 256 },
};
