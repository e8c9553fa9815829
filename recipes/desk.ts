/**
 * The default of `pawl train --env desk`: the laptop recipe adapted to tool calls, on two cores.
 *
 * The easy level: six tools, and rules that never change, so that a model of this size can learn
 * them. A call is a line of JSON; its names and punctuation are always the same tokens, and its
 * numbers are copied from what was seen. As in recipes/laptop.ts, GiGPO compares steps too, and the
 * teacher takes over some failed episodes. One wrong token of some fifty loses an episode, so there
 * is no entropy bonus, and evaluation samples as training does.
 */
import { laptop } from "./laptop.js";

export const desk = {
  ...laptop,
  env: { name: "desk", level: "easy" },
  model: { start: "tiny", maxContext: 512 },
  warmStart: { ...laptop.warmStart, teacher: "expert", episodes: 3200 },
  updates: 40,
  stepLimit: 8,
  maxTokens: 24,
  corrections: { ...laptop.corrections, teacher: "expert" },
  objective: { kl: 0, entropy: 0 },
  evaluation: { every: 20, splits: ["valid_seen", "valid_unseen"], tasks: 256, temperature: 1 },
};
