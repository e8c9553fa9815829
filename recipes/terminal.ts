/**
 * The default of `pawl train --env terminal`: the laptop recipe adapted to command lines, on two
 * cores.
 *
 * Chains of small commands, because a model of this size learns what they share: unseen families ask
 * for known steps in new company.
 * - The teacher follows a task's solution, and sometimes mistakes a word. Without that, what a mistake
 *   looks like is first seen in RL, where episodes then go on with noise until their last step.
 * - As in recipes/desk.ts, the teacher takes over some failed episodes, and there is no entropy
 *   bonus: one wrong name loses an episode.
 * - Every command shows something, if only that it wrote nothing.
 */
import { common } from "./laptop.js";

export const terminal = {
  ...common,
  env: { name: "terminal", kinds: ["chain"] },
  model: { start: "tiny", maxContext: 512 },
  warmStart: { ...common.warmStart, teacher: "expert", episodes: 2000 },
  updates: 48,
  stepLimit: 6,
  maxTokens: 24,
  corrections: { episodes: 24, teacher: "expert", weight: 0.5 },
  objective: { kl: 0, entropy: 0 },
  evaluation: { every: 16, splits: ["valid", "test"], tasks: 200, temperature: 0.4 },
};
