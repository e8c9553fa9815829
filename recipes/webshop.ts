/**
 * The default of `pawl train --env webshop`: the laptop recipe adapted to the shop, on two cores.
 *
 * Without WEBSHOP_DATA the shop is made up, in plain words: a code to click is two tokens, a page of
 * results shows all that decides, and a colour is all there is to choose. Pages come in lines and
 * without the instruction, so that an episode, which is one sequence, stays short. Words to copy from
 * the instruction or from a page are the same tokens there and in the action.
 *
 * One wrong token loses an episode, so there is no entropy bonus, and an action that is not understood
 * ends the episode. Most mistakes are single odd tokens, each a different one, of which a group of eight
 * teaches little: 32 groups an update make the gradient steady enough. The catalogue cannot be predicted, so
 * there is no world-model loss in RL.
 *
 * GRPO, because GiGPO would compare unlike steps: a product's page looks the same before and after a
 * colour is chosen, so that choosing one, a step earlier, would seem worse than buying.
 *
 * docs/results/laptop.md has its results over seeds, and what else was tried.
 */
import { common } from "./laptop.js";

export const webshop = {
  ...common,
  env: { name: "webshop", products: 200, observations: "lines", perPage: 3, wording: "plain" },
  model: { start: "tiny", maxContext: 1024 },
  warmStart: { ...common.warmStart, teacher: "expert", episodes: 3500, epsilon: 0 },
  updates: 100,
  groups: 32,
  stepLimit: 6,
  invalidActionLimit: 1,
  maxTokens: 20,
  objective: { kl: 0, entropy: 0 },
  paw: { loss: "off" },
  optimizer: { ...common.optimizer, learningRate: 2e-4, warmup: 4 },
  gradients: { every: 0 },
  evaluation: { every: 50, splits: ["test"], tasks: 240, temperature: 1 },
};

/**
 * With the official files: pages as they are, and prompts that hold the last two steps, as in the paper.
 * A few products have hundreds of options; their pages are cut.
 */
export const officialWebshop = {
  ...common,
  env: { name: "webshop", limits: { observation: 4000 } },
  prompt: { style: "compact", history: 2 },
  model: { start: "tiny", maxContext: 4096 },
  warmStart: { ...common.warmStart, teacher: "expert", episodes: 2000, epsilon: 0.05 },
  updates: 40,
  groups: 8,
  stepLimit: 15,
  maxTokens: 32,
  evaluation: { every: 20, splits: ["test"], tasks: 64, temperature: 0.4 },
};
