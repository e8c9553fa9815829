/**
 * RWML: reinforcement learning of a world model. The model predicts what an action will do and is
 * rewarded by how close that is to what happened (sim-to-real reward); groups of predictions are
 * compared as GRPO compares groups of episodes, with clipping and a KL penalty towards the start.
 * Task RL follows, or runs alongside.
 *
 * Differences from the textbook: one epoch per update, and old log-probabilities as recorded when
 * sampled, as in `rl.ts`. A group whose rewards are all equal is left out, where GRPO would let the
 * KL penalty act alone.
 */
import {
  type AdvantageOptions,
  type Advantages,
  advantageOptions,
  computeAdvantages,
} from "@pawl/core/advantages/advantages.js";
import { pawOptions } from "@pawl/core/objectives/paw-options.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import type { Group } from "@pawl/core/rollout/episode.js";
import { enginePolicy } from "@pawl/core/rollout/policies/engine.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { countingEpisodes, type OnActivity } from "@pawl/core/train/activity.js";
import { correctionOptions } from "@pawl/core/train/corrections.js";
import { drawTasks, updateSeed } from "@pawl/core/train/draws.js";
import type { Learnt } from "@pawl/core/train/learn.js";
import { createLearner, type LearnerContext } from "@pawl/core/train/learner.js";
import { createClock } from "@pawl/core/train/metrics.js";
import type { RwmlConfig } from "./config.js";
import {
  hasContrast,
  type PredictionSummary,
  predict,
  predictionGroups,
  rewardPredictions,
} from "./prediction-groups.js";
import type { Question } from "./question.js";
import type { StateReward } from "./reward.js";
import type { Triplet } from "./triplet.js";

/** Settings of the loop. */
export type RwmlOptions = Pick<
  RwmlConfig,
  | "updates"
  | "triplets"
  | "groupSize"
  | "predictionTokens"
  | "temperature"
  | "minibatch"
  | "objective"
  | "optimizer"
  | "task"
  | "split"
  | "stepLimit"
  | "maxTokens"
  | "seed"
  | "mismatchLimit"
>;

/** What the loop works with. */
export interface RwmlContext extends Omit<LearnerContext, "critic"> {
  readonly question: Question;
  readonly reward: StateReward;
  /** What to learn from. */
  readonly pool: readonly Triplet[];
  /** Where to start: 0, or where an interrupted run stopped. */
  readonly firstUpdate: number;
  readonly optimizerSteps: number;
  readonly signal?: AbortSignal;
  readonly onActivity?: OnActivity | undefined;
  /** Called after every update; the next one waits for it. */
  onUpdate(done: FinishedRwmlUpdate): Promise<void>;
}

/** One finished update. */
export interface FinishedRwmlUpdate {
  readonly index: number;
  /** Groups of predictions, one per triplet. */
  readonly predictions: readonly Group[];
  readonly summary: PredictionSummary;
  /** Groups of episodes, if task RL runs alongside. */
  readonly tasks: readonly Group[];
  /** Groups of either kind that could not be learnt from, because their rewards were all equal. */
  readonly equalGroups: number;
  /** Absent if that was true of all groups: the weights did not change. */
  readonly learnt: Learnt | undefined;
  readonly optimizerSteps: number;
  readonly seconds: Readonly<Record<(typeof PHASES)[number], number>>;
}

const PHASES = ["predict", "reward", "rollout", "learn"] as const;
const GRPO: AdvantageOptions = advantageOptions().parse({ name: "grpo", penalty: 0 });
/** Only predictions are learnt: no co-training, no teacher, and no second gradient to measure. */
const PREDICTIONS_ONLY = {
  advantage: GRPO,
  paw: pawOptions().parse({ loss: "off" }),
  gradients: { every: 0 },
  corrections: correctionOptions.parse({}),
};

/** Trains the engine's model to predict what actions do. */
export async function trainRwml(context: RwmlContext, options: RwmlOptions): Promise<void> {
  const { engine, question, reward, signal, onActivity } = context;
  const learner = createLearner(context, { ...options, ...PREDICTIONS_ONLY });
  let { optimizerSteps } = context;

  for (let index = context.firstUpdate; index < options.updates; index++) {
    signal?.throwIfAborted();
    const { laps: seconds, lap } = createClock(PHASES);
    const seed = updateSeed(options, index);
    const triplets = drawTriplets(context.pool, options, index);
    const some = { done: 0, total: triplets.length * options.groupSize } as const;
    onActivity?.({ what: "predicting", ...some, unit: "predictions" });
    const predicted = await predict(engine, question, triplets, {
      count: options.groupSize,
      maxTokens: options.predictionTokens,
      temperature: options.temperature,
      seed,
    });
    lap("predict");

    onActivity?.({ what: "judging", ...some, unit: "predictions" });
    const { rewards, summary } = await rewardPredictions(triplets, predicted, reward, signal);
    const predictions = predictionGroups(triplets, predicted, rewards);
    lap("reward");

    const tasks = options.task.groups === 0 ? [] : await playTasks(context, options, seed);
    lap("rollout");

    const world = predictions.filter(hasContrast);
    const acting = tasks.filter(hasContrast);
    const groups = [...world, ...acting];
    const advantages = joinAdvantages(
      computeAdvantages(world, GRPO),
      scaleAdvantages(computeAdvantages(acting, GRPO), options.task.weight),
    );
    const scored = await learner.score(groups);
    const prepared = learner.prepare(groups, advantages, scored, index);
    const stepsInAll = expectedSteps(optimizerSteps, index, options);
    const onBatch = (done: number, total: number): void =>
      onActivity?.({ what: "learning", done, total, unit: "tokens" });
    const place = { stepsBefore: optimizerSteps, stepsInAll, seed, onBatch };
    const result = await learner.learn(prepared, place);
    lap("learn");
    const learnt = result?.learnt;
    optimizerSteps += learnt?.optimizerSteps ?? 0;
    const equalGroups = predictions.length + tasks.length - groups.length;
    await context.onUpdate({
      index,
      predictions,
      summary,
      tasks,
      equalGroups,
      learnt,
      optimizerSteps,
      seconds,
    });
  }
}

/** The triplets of an update: the pool, reshuffled each time it is used up. */
function drawTriplets(
  pool: readonly Triplet[],
  { triplets, seed }: Pick<RwmlOptions, "triplets" | "seed">,
  index: number,
): readonly Triplet[] {
  const count = Math.min(triplets, pool.length);
  const orders = new Map<number, readonly number[]>();
  const orderOf = (pass: number): readonly number[] => {
    const random = createRandom(mixSeed(seed, "pool", pass));
    const order = orders.get(pass) ?? random.shuffle([...pool.keys()]);
    orders.set(pass, order);
    return order;
  };
  return Array.from({ length: count }, (_, k) => {
    const place = index * count + k;
    return pool[orderOf(Math.floor(place / pool.length))[place % pool.length]!]!;
  });
}

/** Episodes with task rewards, played as in `rl.ts`. */
function playTasks(
  { engine, environment, tokenizer, style, signal, onActivity }: RwmlContext,
  { task, split, stepLimit, maxTokens, temperature }: RwmlOptions,
  seed: number,
): Promise<readonly Group[]> {
  return rollout({
    environment,
    policy: enginePolicy({ engine, tokenizer, style, sampling: { maxTokens, temperature } }),
    style,
    tasks: drawTasks(environment, { split, groups: task.groups }, seed),
    groupSize: task.groupSize,
    seed,
    ...countingEpisodes("playing", task.groups * task.groupSize, onActivity),
    stepLimit,
    signal,
  });
}

const joinAdvantages = (...all: readonly Advantages[]): Advantages => ({
  advantages: all.flatMap(({ advantages }) => advantages),
});

function scaleAdvantages({ advantages }: Advantages, factor: number): Advantages {
  const scale = (x: number | readonly number[]) =>
    typeof x === "number" ? factor * x : x.map((one) => factor * one);
  return {
    advantages: advantages.map((group) => group.map((episode) => episode.map(scale))),
  };
}

/** Optimiser steps of the whole run, extrapolated from the updates so far. */
export function expectedSteps(before: number, index: number, options: RwmlOptions): number {
  const { updates, triplets, groupSize, minibatch } = options;
  const perUpdate = index === 0 ? Math.ceil((triplets * groupSize) / minibatch) : before / index;
  return Math.round(perUpdate * updates);
}
