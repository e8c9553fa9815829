/**
 * The default of `pawl train --env desk`: the laptop recipe adapted to tool calls, on two cores.
 *
 * The easy level: six tools, and rules that never change, so that a model of this size can learn
 * them. A call is a line of JSON; names and punctuation are always the same tokens, and its numbers
 * are copied from what was seen. Few episodes are imitated, so that RL has something to learn.
 */
import { common } from "./laptop.js";

export const desk = {
  ...common,
  env: { name: "desk", level: "easy" },
  model: { start: "tiny", maxContext: 512 },
  warmStart: { ...common.warmStart, teacher: "expert", episodes: 2400 },
  updates: 40,
  groups: 16,
  stepLimit: 8,
  maxTokens: 24,
  evaluation: { every: 20, splits: ["valid_seen", "valid_unseen"], tasks: 128, temperature: 0.4 },
};
