/** The configuration of world-model training. */
import { z } from "zod";
import { engineOptions, modelOptions } from "../train/config.js";
import { optimizerOptions } from "../train/schedule.js";
import { protocolOptions } from "./protocol.js";

const count = z.int().min(1);

/** Where trajectories come from. */
export const dataOptions = z
  .array(z.string().min(1))
  .min(1)
  .describe("data sets of pawl wm data, or chat JSON; several are put together");

/** Budgets by environment. */
export const budgetOptions = z
  .array(z.string())
  .default([])
  .describe("most trajectories of each environment, for example household=2000,alfworld=500");

/** How much a world model may say. */
export const maxTokensOption = count.default(256).describe("longest response, in tokens");

/** The schema of WM-SFT. */
export const worldTrainConfig = z.strictObject({
  data: dataOptions,
  budget: budgetOptions,
  protocol: protocolOptions,
  model: modelOptions.prefault({ start: "small", maxContext: 1024 }),
  engine: engineOptions,
  epochs: count.default(5).describe("passes over the trajectories"),
  batch: count.default(8).describe("trajectories per optimiser step"),
  optimizer: optimizerOptions.prefault({ learningRate: 1e-3, schedule: "cosine", warmup: 50 }),
  evaluation: z
    .strictObject({
      every: z.int().min(0).default(500).describe("optimiser steps between evaluations; 0: never"),
      trajectories: count.default(32).describe("test trajectories to evaluate on"),
    })
    .prefault({}),
  maxTokens: maxTokensOption,
  checkpointEvery: count.default(250).describe("optimiser steps between checkpoints"),
  seed: z.int().min(0).default(0).describe("seed of weights and of every draw"),
});

/** The settings of WM-SFT. */
export type WorldTrainConfig = z.output<typeof worldTrainConfig>;
