/** The configuration of training. */
import { z } from "zod";
import { advantageOptions } from "../advantages/advantages.js";
import type { EnvKind } from "../envs/env.js";
import { envConfig } from "../envs/open.js";
import { objectiveOptions } from "../objectives/objective.js";
import { pawOptions } from "../objectives/paw-options.js";
import { promptOptions } from "../text/prompt.js";
import { correctionOptions } from "./corrections.js";
import { criticOptions } from "./critic.js";
import { engineOptions } from "./engines.js";
import { gradientOptions } from "./gradients.js";
import { optimizerOptions } from "./schedule.js";
import { sftOptions } from "./sft.js";

const count = z.int().min(1);

/** The model to train: one of a preset size from scratch, or a checkpoint. */
export const modelOptions = z
  .strictObject({
    start: z
      .string()
      .min(1)
      .default("tiny")
      .describe(
        "tiny, small or base: from scratch; served: the engine server's model; else a run, or a checkpoint folder",
      ),
    maxContext: count.default(512).describe("longest sequence of a model from scratch, in tokens"),
  })
  .prefault({});

/** Episodes to imitate before RL, so that a model from scratch speaks the format at all. */
const warmStartOptions = z
  .strictObject({
    episodes: z.int().min(0).default(0).describe("episodes to imitate before RL; 0 is none"),
    teacher: z
      .enum(["expert", "seeker"])
      .default("expert")
      .describe("who plays them: expert sees the true state, seeker only what it has looked at"),
    epsilon: z
      .number()
      .min(0)
      .max(1)
      .default(0)
      .describe("share of steps at which the teacher strays: acts at random or repeats itself"),
    emphasis: z
      .strictObject({
        types: z.array(z.string()).default([]).describe("types of tasks to show more of"),
        share: z.number().gt(0).lt(1).default(0.5).describe("their share of the episodes"),
      })
      .prefault({}),
    runs: z
      .array(z.string())
      .default([])
      .describe("recorded rollouts of a teacher, whose episodes are imitated in place of new ones"),
    sft: sftOptions,
  })
  .prefault({});

/** When and on what to evaluate. */
const evaluationOptions = z
  .strictObject({
    every: z.int().min(0).default(10).describe("updates between evaluations; 0 is never"),
    splits: z.array(z.string()).default(["valid_seen", "valid_unseen"]).describe("each by itself"),
    tasks: count.default(128).describe("the first tasks of each split, each once"),
    temperature: z.number().min(0).default(0.4).describe("0 takes the most probable token"),
  })
  .prefault({});

/** The schema of training in an environment of this kind. */
export function trainConfig(kind: EnvKind) {
  return z.strictObject({
    env: envConfig(kind).prefault({}),
    prompt: promptOptions.prefault({}),
    model: modelOptions,
    engine: engineOptions,
    warmStart: warmStartOptions,
    updates: z.int().min(0).default(150).describe("updates of RL"),
    split: z.string().default("train").describe("the split to learn on"),
    groups: count.default(16).describe("tasks per update, a group of episodes each"),
    groupSize: count.default(8).describe("episodes per group"),
    stepLimit: count.optional().describe("steps per episode; default: the environment's limit"),
    patience: count
      .optional()
      .describe("refused actions in a row after which an episode to learn from ends; default: any"),
    maxTokens: count
      .default(512)
      .describe("longest response, in tokens; one cut off there is invalid"),
    temperature: z.number().gt(0).default(1).describe("the policy samples and learns at this"),
    minibatch: count.default(256).describe("steps of episodes per optimiser step"),
    corrections: correctionOptions,
    advantage: advantageOptions,
    critic: criticOptions,
    objective: objectiveOptions,
    paw: pawOptions,
    optimizer: optimizerOptions,
    evaluation: evaluationOptions,
    gradients: gradientOptions,
    mismatchLimit: z
      .number()
      .gt(0)
      .optional()
      .describe(
        "mismatch.mean above which a run stops; default: 0.001 in 32 bits, 0.1 in 16 or with a sampler",
      ),
    checkpointEvery: count.default(1).describe("updates between checkpoints"),
    seed: z.int().min(0).default(0).describe("seed of weights, tasks and every draw"),
  });
}

/** The settings of training. */
export type TrainConfig = z.output<ReturnType<typeof trainConfig>>;
