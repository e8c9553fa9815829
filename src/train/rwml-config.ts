/** The configuration of RWML. */
import { z } from "zod";
import type { EnvKind } from "../envs/env.js";
import { filterOptions } from "../rwml/filter.js";
import { rewardOptions } from "../rwml/reward.js";
import { trainConfig } from "./config.js";

const count = z.int().min(1);

/** Where triplets come from. */
const collectOptions = z
  .strictObject({
    runs: z
      .array(z.string())
      .default([])
      .describe("recorded runs whose episodes to cut; none: the model plays"),
    episodes: count.default(512).describe("episodes for the model to play, a task each"),
    epsilon: z
      .number()
      .min(0)
      .max(1)
      .default(0)
      .describe("share of steps at which it acts at random, where actions are listed"),
  })
  .prefault({});

/** Task rewards that go along with the predictions'. */
const taskOptions = z
  .strictObject({
    groups: z.int().min(0).default(0).describe("tasks per update, beside the triplets; 0 is none"),
    groupSize: count.min(2).default(8).describe("episodes per task"),
    weight: z.number().gt(0).default(1).describe("what they count beside predictions"),
  })
  .prefault({});

/** What is kept back to measure with. */
const heldOutOptions = z
  .strictObject({
    share: z.number().gt(0).lt(1).default(0.1).describe("share of the tasks not to learn from"),
    triplets: count.default(128).describe("triplets of them to predict at each evaluation"),
    samples: count
      .min(2)
      .default(4)
      .describe("predictions of each at the training temperature, beside the most probable one"),
    text: z
      .string()
      .optional()
      .describe("a text file, paragraphs between empty lines, whose loss is watched too"),
  })
  .prefault({});

/** The schema of RWML in an environment of this kind; what it shares with training is training's. */
export function rwmlConfig(kind: EnvKind) {
  const shared = trainConfig(kind).shape;
  return z.strictObject({
    env: shared.env,
    prompt: shared.prompt,
    model: z
      .strictObject({
        start: z
          .string()
          .min(1)
          .describe("the model: a run (its latest checkpoint), or its folder"),
      })
      .prefault({} as { start: string }),
    engine: shared.engine,
    collect: collectOptions,
    filter: filterOptions,
    reward: rewardOptions,
    updates: z.int().min(0).default(100).describe("updates of RWML"),
    triplets: count.default(32).describe("triplets per update, a group of predictions each"),
    groupSize: count.min(2).default(8).describe("predictions per triplet"),
    predictionTokens: count.default(128).describe("longest prediction, reasoning included"),
    task: taskOptions,
    split: shared.split,
    stepLimit: shared.stepLimit,
    maxTokens: shared.maxTokens,
    temperature: shared.temperature,
    minibatch: count.default(256).describe("predictions and steps per optimiser step"),
    objective: shared.objective,
    optimizer: shared.optimizer,
    heldOut: heldOutOptions,
    evaluation: shared.evaluation,
    mismatchLimit: shared.mismatchLimit,
    checkpointEvery: shared.checkpointEvery,
    seed: shared.seed,
  });
}

/** The settings of RWML. */
export type RwmlConfig = z.output<ReturnType<typeof rwmlConfig>>;
