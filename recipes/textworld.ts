/**
 * The default of `pawl train --env textworld`: the laptop recipe adapted to TextWorld, on two cores.
 *
 * Needs games (`pawl env info textworld` says how to make them). The only teacher is each game's
 * walkthrough, which does not find its way back after a random action: so none are taken, and more
 * episodes than there are training games would be the same ones again. Rooms are described at
 * length, so prompts hold the last two steps.
 */
import { common } from "./laptop.js";

export const textworld = {
  ...common,
  env: { name: "textworld" },
  prompt: { style: "compact", history: 2 },
  model: { start: "tiny", maxContext: 2048 },
  warmStart: {
    ...common.warmStart,
    teacher: "expert",
    episodes: 400,
    epsilon: 0,
  },
  updates: 40,
  groups: 8,
  // As in the original and in Word-to-World.
  stepLimit: 50,
  maxTokens: 24,
  evaluation: { every: 20, splits: ["test"], tasks: 64, temperature: 0.4 },
};
