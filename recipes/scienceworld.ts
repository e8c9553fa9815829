/**
 * The default of `pawl train --env scienceworld`: the laptop recipe adapted to ScienceWorld, on two
 * cores and with two Java processes.
 *
 * A model of this size reads little, so it gets the four kinds of finding tasks with open doors, and
 * prompts that hold the last two steps. The expert needs seconds for every task that it has not
 * played yet, so the warm start is short. Points are rewarded as they are gained, so rewards differ
 * also where nobody succeeds.
 */
import { common } from "./laptop.js";

export const scienceworld = {
  ...common,
  env: {
    name: "scienceworld",
    types: ["find-living-thing", "find-non-living-thing", "find-plant", "find-animal"],
    simplifications: ["easy"],
    processes: 2,
  },
  prompt: { style: "compact", history: 2 },
  model: { start: "tiny", maxContext: 2048 },
  warmStart: { ...common.warmStart, teacher: "expert", episodes: 600, epsilon: 0 },
  updates: 40,
  groups: 8,
  stepLimit: 30,
  maxTokens: 32,
  evaluation: { every: 20, splits: ["dev"], tasks: 32, temperature: 0.4 },
};
