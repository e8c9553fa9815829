/**
 * `pawl train --quick`: the laptop recipe in a world of one room and two task families. Takes a
 * minute and a half.
 *
 * Also the base of `pawl bench observations`, where many seeds matter more than a hard task: episodes are
 * short, so a whole run costs little, and the start model is weak enough to leave room for
 * improvement. Attempts do not become identical in so few updates, so there is no entropy bonus.
 * Evaluation samples as training does, because improvement shows there first.
 */
import { common } from "./laptop.js";

export const quick = {
  ...common,
  env: { name: "household", rooms: 1, receptacles: 4, objects: 3, families: ["pick", "look"] },
  model: { start: "tiny", maxContext: 512 },
  warmStart: { ...common.warmStart, episodes: 1800 },
  updates: 36,
  groups: 8,
  stepLimit: 10,
  minibatch: 256,
  objective: { ...common.objective, entropy: 0 },
  evaluation: { every: 12, tasks: 128, temperature: 1 },
};
