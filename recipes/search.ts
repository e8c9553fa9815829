/**
 * The default of `pawl train --env search`: the laptop recipe adapted to search-augmented QA, on
 * two cores.
 *
 * Without SEARCHQA_DATA the world and its questions are made up. A model of this size learns to read
 * only if that is easier than remembering. So the world has many people and books, whose facts cannot
 * be learnt by heart, and names of few words, which the model meets often. Answers are names of
 * people: it copies them into its searches too, and a model with two layers learns to copy words that
 * it only ever answers with much later. A search returns one passage with one fact.
 *
 * One wrong token loses an episode, so there is no entropy bonus, and evaluation samples as training
 * does. What a passage says cannot be predicted, so there is no world-model loss in RL.
 *
 * A malformed response ends a training episode. Where it is carried out as far as it is understood,
 * searches without a closing tag are rewarded like others, and within a few updates there may be no
 * others.
 *
 * docs/results/laptop.md has its results over seeds, and what else was tried.
 */
import { common } from "./laptop.js";

export const search = {
  ...common,
  env: {
    name: "search",
    topk: 1,
    hops: "one",
    size: 3000,
    names: "shared",
    relations: ["teacher", "author"],
  },
  model: { start: "tiny", maxContext: 512 },
  warmStart: { ...common.warmStart, teacher: "expert", episodes: 2800, epsilon: 0 },
  updates: 60,
  stepLimit: 4,
  invalidActionLimit: 1,
  maxTokens: 16,
  objective: { kl: 0, entropy: 0 },
  paw: { loss: "off" },
  optimizer: { ...common.optimizer, schedule: "constant", warmup: 4 },
  gradients: { every: 0 },
  evaluation: { every: 30, splits: ["valid_seen"], tasks: 200, temperature: 1 },
};
