/**
 * The default of `pawl train --env textworld`: the laptop recipe adapted to the made-up games, on two
 * cores. recipes/textworld-games.ts is for TextWorld's own.
 *
 * Objectives say where things are, so the expert can be imitated. It finds its way back after random
 * actions. Prompts hold the whole history: the cookbook is read once.
 */
import { common } from "./laptop.js";

export const textworld = {
  ...common,
  env: { name: "textworld" },
  model: { start: "tiny", maxContext: 2048 },
  warmStart: { ...common.warmStart, teacher: "expert" },
  updates: 60,
  groups: 8,
  // As in the original and in Word-to-World.
  stepLimit: 50,
  maxTokens: 16,
  evaluation: { every: 20, splits: ["test"], tasks: 100, temperature: 0.4 },
};
