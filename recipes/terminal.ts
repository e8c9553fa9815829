/**
 * The default of `pawl train --env terminal`: the laptop recipe adapted to command lines, on two
 * cores.
 *
 * Chains of small commands, because a model of this size learns what they share: unseen families
 * ask for known steps in new company.
 * - The teacher follows a task's solution, and sometimes mistakes a word. Without that, what a
 *   mistake looks like is first seen in RL, where episodes then end in noise.
 * - Every command shows something, if only that it wrote nothing.
 *
 * RL adds little to what is imitated (docs/terminal.md).
 */
import { common } from "./laptop.js";

export const terminal = {
  ...common,
  env: { name: "terminal", kinds: ["chain"] },
  model: { start: "tiny", maxContext: 512 },
  warmStart: { ...common.warmStart, teacher: "expert", episodes: 3000 },
  updates: 24,
  stepLimit: 6,
  maxTokens: 24,
  evaluation: { every: 8, splits: ["valid", "test"], tasks: 200, temperature: 0.4 },
};
