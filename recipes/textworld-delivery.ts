/**
 * The made-up games of TextWorld's tw-simple family on two cores, from a short warm start to RL:
 * `pawl train --recipe textworld-delivery`.
 *
 * The laptop recipe with its corrections: after so short a warm start the model often takes another
 * food than the one asked for, and RL alone learns little from groups in which every episode fails.
 * The expert needs at most 13 steps, so episodes end after 20.
 *
 * docs/results/worlds.md has its results.
 */
import { textworld } from "./textworld.js";

export default {
  ...textworld,
  env: { ...textworld.env, data: "made-up", types: ["delivery"] },
  model: { ...textworld.model, maxContext: 1024 },
  warmStart: { ...textworld.warmStart, episodes: 3000 },
  updates: 40,
  groups: 16,
  stepLimit: 20,
  advantage: { ...textworld.advantage, name: "gigpo" },
  corrections: { episodes: 24, teacher: "expert", weight: 0.5 },
  evaluation: { ...textworld.evaluation, every: 10, tasks: 50 },
};
