/** Evaluation: a policy on a fixed list of tasks, each played once. */
import type { Engine } from "../engine/engine.js";
import { EnvError, type Environment, type Task } from "../envs/env.js";
import { createRandom, mixSeed } from "../random.js";
import type { Episode } from "../rollout/episode.js";
import { enginePolicy } from "../rollout/policies/engine.js";
import { type ActingModel, bringsPolicy, type Policy } from "../rollout/policy.js";
import { play } from "../rollout/rollout.js";
import { createTally, type Tally } from "../rollout/tally.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import type { PromptStyle } from "../text/prompt.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { countingEpisodes, type OnActivity } from "./activity.js";
import { evaluationMetrics } from "./metrics.js";

/** What to evaluate, and on which tasks. */
export interface EvaluationOptions {
  readonly environment: Environment;
  readonly policy: Policy;
  readonly style: PromptStyle;
  readonly split: string;
  /** Number of tasks; default: all. */
  readonly tasks?: number | undefined;
  /** Whether they are a fixed random sample (the default), or the first of the split. */
  readonly shuffle?: boolean;
  readonly seed: number;
  readonly stepLimit?: number;
  readonly concurrency?: number;
  readonly signal?: AbortSignal;
  readonly onEpisode?: (episode: Episode) => void;
}

/** Plays each task once. */
export async function evaluate(options: EvaluationOptions): Promise<Tally> {
  const tasks = evaluationTasks(options.environment, options.split, options);
  const tally = createTally();
  await play({
    ...options,
    tasks,
    groupSize: 1,
    onEpisode(episode) {
      tally.add(episode);
      options.onEpisode?.(episode);
    },
  });
  return tally;
}

/** What a run evaluates: its model in its environment. */
export interface EvaluatedModel {
  readonly environment: Environment;
  readonly style: PromptStyle;
  readonly tokenizer: Tokenizer;
  readonly engine: Engine;
}

/** The settings of a run by which its splits are evaluated. */
export interface SplitsConfig {
  readonly evaluation: {
    readonly every: number;
    readonly splits: readonly string[];
    readonly tasks: number;
    readonly shuffle: boolean;
    readonly temperature: number;
  };
  readonly maxTokens: number;
  readonly stepLimit?: number | undefined;
}

/** How to stop the evaluation of several splits, and a callback for what was played. */
export interface SplitsOptions {
  readonly signal?: AbortSignal;
  readonly onActivity?: OnActivity | undefined;
  readonly onSplit?: (split: string, episodes: readonly Episode[]) => void;
}

/**
 * Evaluates the model on every configured split, as metrics; returns nothing if evaluation is off.
 */
export async function evaluateSplits(
  model: EvaluatedModel,
  config: SplitsConfig,
  seed: number,
  { signal, onActivity, onSplit }: SplitsOptions = {},
): Promise<MetricsLine> {
  const { every, splits, tasks, shuffle, temperature } = config.evaluation;
  if (every === 0) return {};
  const { maxTokens, stepLimit } = config;
  const { environment, style } = model;
  const policy = modelPolicy({ ...model, sampling: { maxTokens, temperature } });
  const lines: MetricsLine[] = [];
  const all = splits.map((split) => evaluationTasks(environment, split, { tasks, shuffle }).length);
  const { onEpisode } = countingEpisodes(
    "evaluating",
    all.reduce((total, some) => total + some, 0),
    onActivity,
  );
  for (const split of splits) {
    const played: Episode[] = [];
    const tally = await evaluate({
      environment,
      policy,
      style,
      split,
      tasks,
      shuffle,
      seed,
      ...(stepLimit !== undefined && { stepLimit }),
      ...(signal !== undefined && { signal }),
      onEpisode(episode) {
        played.push(episode);
        onEpisode?.();
      },
    });
    onSplit?.(split, played);
    lines.push(evaluationMetrics(split, tally));
  }
  return Object.assign({}, ...lines) as MetricsLine;
}

/**
 * Some tasks of a split, or all in their order; an empty list is an error, because any number would be
 * made up.
 *
 * The first tasks of a split are not like the others: of the household's, they are easier. So some are
 * a random sample. It depends on the world and the split alone, so that all runs and arms play the same
 * tasks, and a smaller sample is the beginning of a larger one.
 */
export function evaluationTasks(
  environment: Pick<Environment, "name" | "tasks">,
  split: string,
  { tasks: count, shuffle = true }: Pick<EvaluationOptions, "tasks" | "shuffle"> = {},
): readonly Task[] {
  const all = environment.tasks(split);
  const isSample = shuffle && count !== undefined && count < all.length;
  const seed = mixSeed("evaluation", environment.name, split);
  const tasks = (isSample ? createRandom(seed).shuffle([...all]) : all).slice(0, count);
  if (tasks.length === 0) {
    throw new EnvError(
      `there is nothing to evaluate: split "${split}" of ${environment.name} has no task`,
    );
  }
  return tasks;
}

/** The model, and where it acts. */
interface ModelPolicyOptions extends ActingModel {
  readonly environment: Environment;
}

/** The model as a policy of its environment. */
export function modelPolicy({ environment, ...model }: ModelPolicyOptions): Policy {
  return bringsPolicy(environment) ? environment.policy(model) : enginePolicy(model);
}
