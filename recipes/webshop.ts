/**
 * The default of `pawl train --env webshop`: the laptop recipe adapted to the shop, on two cores.
 *
 * Without WEBSHOP_DATA the shop is made up, in plain words: a code to click is two tokens, and a page
 * of results shows all that decides. Pages come in lines and without the instruction, so that an
 * episode, which is one sequence, stays short. Words to copy from the instruction or from a page are
 * the same tokens there and in the action.
 *
 * One wrong token loses an episode, so there is no entropy bonus, and evaluation samples as training
 * does. The catalogue cannot be predicted, so there is no world-model loss in RL.
 *
 * docs/results/laptop.md says what it reaches.
 */
import { common } from "./laptop.js";

export const webshop = {
  ...common,
  env: { name: "webshop", products: 200, observations: "lines", perPage: 3, wording: "plain" },
  model: { start: "tiny", maxContext: 1024 },
  warmStart: { ...common.warmStart, teacher: "expert", episodes: 3000, epsilon: 0 },
  updates: 30,
  groups: 8,
  stepLimit: 8,
  maxTokens: 20,
  advantage: { ...common.advantage, name: "gigpo" },
  objective: { kl: 0, entropy: 0 },
  paw: { loss: "off" },
  gradients: { every: 0 },
  evaluation: { every: 10, splits: ["test"], tasks: 128, temperature: 1 },
};

/** With the official files: pages as they are, and prompts that hold the last two steps, as in the paper. */
export const officialWebshop = {
  ...common,
  env: { name: "webshop" },
  prompt: { style: "compact", history: 2 },
  model: { start: "tiny", maxContext: 2048 },
  warmStart: { ...common.warmStart, teacher: "expert", episodes: 2000, epsilon: 0.05 },
  updates: 40,
  groups: 8,
  stepLimit: 15,
  maxTokens: 32,
  evaluation: { every: 20, splits: ["test"], tasks: 64, temperature: 0.4 },
};
