/**
 * The default of `pawl wm warm-start`: is an agent better for having been a world model first?
 *
 * The laptop recipe with fewer expert episodes, so that there is something left to gain, after and without
 * WM-SFT on a data set that `pawl wm data` made (`--world.data`).
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
