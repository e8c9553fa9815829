/**
 * The default of `pawl train --env terminal`: the laptop recipe adapted to command lines, on two
 * cores.
 *
 * Chains of small commands, because a model of this size learns what they share: unseen families ask
 * for known steps in new company. The teacher follows a task's solution and never strays, so what a
 * mistake looks like is first seen in RL. Every command shows something, if only that it wrote
 * nothing.
 */
import { common } from "./laptop.js";

export const terminal = {
  ...common,
  env: { name: "terminal", kinds: ["chain"] },
  model: { start: "tiny", maxContext: 512 },
  warmStart: { ...common.warmStart, teacher: "expert", epsilon: 0, episodes: 2000 },
  updates: 60,
  stepLimit: 6,
  maxTokens: 24,
  evaluation: { every: 20, splits: ["valid", "test"], tasks: 200, temperature: 0.4 },
};
