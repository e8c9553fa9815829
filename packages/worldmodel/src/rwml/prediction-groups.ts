/**
 * Predictions as episodes of one step, a group for each triplet: the prediction is the action, and
 * its similarity to the real next state is the reward. So estimators, objective and update are
 * those of task RL.
 */

import { askEngine } from "@pawl/core/engine/ask.js";
import type { Engine } from "@pawl/core/engine/engine.js";
import { mixSeed } from "@pawl/core/random.js";
import type { Group } from "@pawl/core/rollout/episode.js";
import { appendResponse } from "@pawl/core/text/encode.js";
import type { Sequence } from "@pawl/core/text/sequence.js";
import type { Answer, AnswerProblem, Question } from "./question.js";
import type { StatePair, StateReward } from "./reward.js";
import { actionOf, nameOf, nextStateOf, type Triplet } from "./triplet.js";

/** Rewards of all predictions, triplets × predictions, and the problems of some. */
export interface RewardedPredictions {
  readonly rewards: readonly (readonly number[])[];
  readonly summary: PredictionSummary;
}

/** Statistics of some predictions, for metrics. */
export interface PredictionSummary extends Readonly<Record<AnswerProblem, number>> {
  readonly predictions: number;
  readonly meanReward: number;
  /** Share of predictions that match the real state exactly. */
  readonly exact: number;
  /** Rewards that are 0 because a judge gave no verdict. */
  readonly unreadable: number;
}

/** Rewards predictions; one that is empty, unended or has no answer gets 0. */
export async function rewardPredictions(
  triplets: readonly Triplet[],
  predictions: readonly (readonly Prediction[])[],
  reward: StateReward,
  signal?: AbortSignal,
): Promise<RewardedPredictions> {
  const pairs: StatePair[] = [];
  const places = predictions.map((group, i) => {
    const real = nextStateOf(triplets[i]!).trim();
    // A group often predicts the same text more than once, and judges cost money per question.
    const asked = new Map<string, number>();
    return group.map(({ text, problem }): number | "same" | undefined => {
      // If the world answers nothing, predicting nothing is right.
      if (problem === "empty" && real === "") return "same";
      if (problem !== undefined) return undefined;
      if (text === real) return "same";
      const place = asked.get(text) ?? pairs.length;
      if (place === pairs.length) {
        pairs.push({ predicted: text, real, action: actionOf(triplets[i]!) });
        asked.set(text, place);
      }
      return place;
    });
  });
  const { values, unreadable } = await reward.rate(pairs, signal);
  const rewards = places.map((group) =>
    group.map((place) => (place === undefined ? 0 : place === "same" ? 1 : values[place]!)),
  );
  const all = predictions.flat();
  const count = (problem: AnswerProblem): number =>
    all.filter((prediction) => prediction.problem === problem).length;
  const share = (sum: number): number => sum / Math.max(all.length, 1);
  return {
    rewards,
    summary: {
      predictions: all.length,
      meanReward: share(rewards.flat().reduce((sum, value) => sum + value, 0)),
      exact: share(places.flat().filter((place) => place === "same").length),
      empty: count("empty"),
      unended: count("unended"),
      malformed: count("malformed"),
      unreadable,
    },
  };
}

/** Groups of predictions with their rewards, numbered from `first`. */
export function predictionGroups(
  triplets: readonly Triplet[],
  predictions: readonly (readonly Prediction[])[],
  rewards: readonly (readonly number[])[],
  first = 0,
): readonly Group[] {
  return triplets.map((triplet, i): Group => {
    const { source } = triplet;
    const task = { ...source.task, id: nameOf(triplet) };
    const index = first + i;
    return {
      index,
      task,
      episodes: predictions[i]!.map((prediction, attempt) => ({
        task,
        group: index,
        attempt,
        seed: source.seed,
        policy: "prediction",
        goal: `What follows: ${actionOf(triplet)}`,
        firstObservation: "",
        steps: [
          {
            prompt: [],
            response: prediction.response,
            action: prediction.text,
            wellFormed: prediction.problem === undefined,
            valid: prediction.problem === undefined,
            observation: nextStateOf(triplet),
            reward: rewards[i]![attempt]!,
            sequence: prediction.sequence,
          },
        ],
        return: rewards[i]![attempt]!,
        success: rewards[i]![attempt] === 1,
        stop: "done",
      })),
    };
  });
}

/** Whether the rewards of a group's complete episodes differ; if not, it teaches nothing. */
export function hasContrast({ episodes }: Group): boolean {
  const whole = episodes.filter(({ stop }) => stop !== "broken");
  return whole.some((episode) => episode.return !== whole[0]!.return);
}

/** How to sample. */
interface PredictOptions {
  /** Predictions per triplet. */
  readonly count: number;
  readonly maxTokens: number;
  /** 0 is greedy decoding. */
  readonly temperature: number;
  readonly seed: number;
}

/** One prediction, with its sampled tokens. */
export interface Prediction extends Answer {
  readonly response: string;
  readonly sequence: Sequence;
}

/** Predictions of each triplet: triplets × count. */
export async function predict(
  engine: Engine,
  question: Question,
  triplets: readonly Triplet[],
  { count, maxTokens, temperature, seed }: PredictOptions,
): Promise<readonly (readonly Prediction[])[]> {
  const prompts = triplets.map((triplet) => question.ask(triplet));
  const requests = triplets.map((triplet, i) => ({
    prompt: prompts[i]!.ids,
    count,
    maxTokens,
    temperature,
    stop: question.stop,
    seed: mixSeed(seed, nameOf(triplet)),
  }));
  const samples = await askEngine(() => engine.sample(requests));
  return samples.map((group, i) =>
    group.map((sample) => ({
      ...question.read(sample.tokens),
      sequence: appendResponse(prompts[i]!, { ...sample, ids: sample.tokens, temperature }),
    })),
  );
}

/** The triplets whose question and answer fit the model's context. */
export function fitting(
  engine: Engine,
  question: Question,
  triplets: readonly Triplet[],
  maxTokens: number,
): readonly Triplet[] {
  const { maxContext } = engine.capabilities;
  return triplets.filter((triplet) => question.ask(triplet).ids.length + maxTokens <= maxContext);
}
