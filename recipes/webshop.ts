/**
 * The default of `pawl train --env webshop`: the laptop recipe adapted to the shop, on two cores.
 *
 * Without WEBSHOP_DATA the shop is made up. Its pages are long and repeat what came before, so
 * prompts hold the last two steps, as in the paper. A purchase is rewarded by how well it fits, so
 * rewards differ without any emphasis.
 */
import { common } from "./laptop.js";

export const webshop = {
  ...common,
  env: { name: "webshop" },
  prompt: { style: "compact", history: 2 },
  model: { start: "tiny", maxContext: 2048 },
  warmStart: {
    ...common.warmStart,
    teacher: "expert",
    episodes: 2000,
    epsilon: 0.05,
  },
  updates: 40,
  groups: 8,
  stepLimit: 15,
  maxTokens: 32,
  evaluation: { every: 20, splits: ["test"], tasks: 64, temperature: 0.4 },
};
