/**
 * The default of `npm run bench -- wm-warm-start`: does it help an agent to have been a world model first?
 *
 * The laptop recipe with fewer expert episodes, so that there is something left to gain, with and
 * without WM-SFT on a data set made by `pawl wm data` (`--world.data`).
 */
import { common } from "./laptop.js";

export const warmStart = {
  world: {
    epochs: 3,
    batch: 8,
    optimizer: { learningRate: 2e-3, schedule: "cosine", warmup: 50 },
  },
  train: {
    ...common,
    warmStart: { ...common.warmStart, episodes: 500 },
  },
  seeds: [0, 1, 2],
};
