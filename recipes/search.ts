/**
 * The default of `pawl train --env search`: the laptop recipe adapted to search-augmented QA, on
 * two cores.
 *
 * Without SEARCHQA_DATA the world and its questions are made up. Questions need one fact, and a
 * search returns one passage. A model of this size learns to search for what is asked about; we
 * have not seen it answer well (docs/settings.md).
 */
import { common } from "./laptop.js";

export const search = {
  ...common,
  env: { name: "search", topk: 1, hops: "one" },
  model: { start: "tiny", maxContext: 1024 },
  warmStart: { ...common.warmStart, teacher: "expert", episodes: 4000 },
  updates: 40,
  stepLimit: 4,
  maxTokens: 32,
  evaluation: { every: 20, splits: ["valid_seen"], tasks: 128, temperature: 0.4 },
};
