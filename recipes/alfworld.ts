/**
 * The default of `pawl train --env alfworld`: the laptop recipe adapted to ALFWorld, on two cores.
 *
 * Needs the games (`pawl env info alfworld` says how to get them). ALFWorld's only teacher sees the
 * true state and is slow to find its way back after a random action, so this recipe makes do with a
 * few episodes and few random actions; recipes/alfworld-scratch.ts shows what 17,000 episodes and a
 * GPU achieve. Rooms are large: prompts hold the whole history, and the context is twice the laptop
 * recipe's.
 */
import { common } from "./laptop.js";

export const alfworld = {
  ...common,
  env: { name: "alfworld", order: 0 },
  model: { start: "tiny", maxContext: 1536 },
  warmStart: {
    ...common.warmStart,
    teacher: "expert",
    episodes: 1500,
    epsilon: 0.05,
  },
  updates: 40,
  groups: 8,
  maxTokens: 12,
  evaluation: { every: 20, tasks: 64, temperature: 0.4 },
};
