/** The configuration of world-model training. */

import { optimizerOptions } from "@pawl/core/train/schedule.js";
import { modelOptions } from "@pawl/training/config.js";
import { engineOptions } from "@pawl/training/engines.js";
import { trackOptions } from "@pawl/training/trackers/options.js";
import { z } from "zod";
import { protocolOptions } from "./protocol.js";

const count = z.int().min(1);

/** Where trajectories come from. */
export const dataOptions = z
  .array(z.string().min(1))
  .min(1)
  .describe("data sets made by pawl wm data, or chat JSON files; several are combined");

/** Budgets by environment. */
export const budgetOptions = z
  .array(z.string())
  .default([])
  .describe("maximum trajectories per environment, such as household=2000,alfworld=500");

/** How long a world model's responses may be. */
export const maxTokensOption = count
  .default(256)
  .describe("maximum length of a response in tokens");

/** When the real answer replaces the model's. */
export const anchorOptions = z
  .strictObject({
    every: z
      .int()
      .min(0)
      .default(0)
      .describe("insert the real observation every this many steps (0: never)"),
    actions: z
      .array(z.string())
      .default([])
      .describe("insert the real observation after actions with this prefix, such as search["),
  })
  .prefault({});

// The settings of agent training, with defaults for a model from scratch.
const model = modelOptions.unwrap();
const optimizer = optimizerOptions.unwrap();

/** A setting with another default and the same help. */
function withDefault<S extends z.ZodType>(
  setting: z.ZodDefault<S>,
  value: z.util.NoUndefined<z.output<S>>,
): z.ZodDefault<S> {
  return setting
    .unwrap()
    .default(value)
    .describe(setting.description ?? "");
}

/** The schema of WM-SFT. */
export const worldTrainConfig = z.strictObject({
  data: dataOptions,
  budget: budgetOptions,
  protocol: protocolOptions,
  model: model
    .extend({
      start: withDefault(model.shape.start, "small"),
      maxContext: withDefault(model.shape.maxContext, 1024),
    })
    .prefault({}),
  engine: engineOptions,
  epochs: count.default(5).describe("epochs over the trajectories"),
  batch: count.default(8).describe("trajectories per optimiser step"),
  optimizer: optimizer
    .extend({
      learningRate: withDefault(optimizer.shape.learningRate, 1e-3),
      schedule: withDefault(optimizer.shape.schedule, "cosine"),
      warmup: withDefault(optimizer.shape.warmup, 50),
    })
    .prefault({}),
  evaluation: z
    .strictObject({
      every: z
        .int()
        .min(0)
        .default(500)
        .describe("evaluate every this many optimiser steps (0: never)"),
      trajectories: count.default(32).describe("test trajectories to evaluate on"),
    })
    .prefault({}),
  maxTokens: maxTokensOption,
  track: trackOptions,
  checkpointEvery: count.default(250).describe("save a checkpoint every this many optimiser steps"),
  seed: z.int().min(0).default(0).describe("random seed for weights and sampling"),
});

/** The settings of WM-SFT. */
export type WorldTrainConfig = z.output<typeof worldTrainConfig>;
