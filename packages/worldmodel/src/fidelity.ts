/**
 * Fidelity: how often a world model gives the world's answer, given the real turns before it.
 *
 * Exact match compares the observation, after trimming, and whether the goal is reached; F1
 * compares words, for worlds with more than one good answer. If every token of an answer is by far
 * the most probable one, it need not be sampled, so most turns of a good model cost one pass over
 * their trajectory.
 */
import { degenerations, type Prediction, type WorldModel, type WorldQuery } from "./model.js";
import { groupBy, type Outcome, type Trajectory } from "./trajectory.js";

/** One answer compared with the world's. */
export interface ScoredTurn {
  readonly trajectory: Trajectory;
  /** Number of the turn, from 0. */
  readonly index: number;
  readonly prediction: Prediction;
  readonly exact: boolean;
  readonly f1: number;
}

/** Scores of some turns. */
export interface FidelityScore {
  readonly turns: number;
  readonly exactMatch: number;
  readonly f1: number;
  /** Fraction that is right about whether the goal is reached. */
  readonly successAccuracy: number;
  /**
   * Of the turns that reach the goal, the fraction that the model recognises; absent if none does.
   */
  readonly successRecall?: number;
  /** Degenerate answers, by kind. */
  readonly degenerate: Readonly<Record<string, number>>;
}

/** Scores overall and by property of the turn. */
export interface FidelityReport {
  readonly all: FidelityScore;
  readonly byEnvironment: Readonly<Record<string, FidelityScore>>;
  readonly bySplit: Readonly<Record<string, FidelityScore>>;
  readonly byType: Readonly<Record<string, FidelityScore>>;
  readonly byPolicy: Readonly<Record<string, FidelityScore>>;
  readonly byDepth: Readonly<Record<string, FidelityScore>>;
}

/** A wrong answer with the world's. */
export interface Mistake {
  readonly task: string;
  /** Number of the step, from 1. */
  readonly step: number;
  readonly action: string;
  readonly real: Outcome;
  readonly predicted: Prediction;
}

/** Turns per batch of questions. */
const QUERIES = 64;
/** Trajectories per batch. */
const TRAJECTORIES = 16;

/**
 * Whether a prediction equals the world's answer: the text after trimming, and the reached goal.
 */
export function sameOutcome(predicted: Outcome, real: Outcome): boolean {
  return (
    predicted.success === real.success && predicted.observation.trim() === real.observation.trim()
  );
}

/** Scores every turn of the trajectories. */
export async function scoreTurns(
  model: WorldModel,
  trajectories: readonly Trajectory[],
  options: {
    readonly signal?: AbortSignal | undefined;
    readonly onTurns?: ((done: number) => void) | undefined;
  } = {},
): Promise<readonly ScoredTurn[]> {
  const { signal, onTurns } = options;
  const scored: ScoredTurn[] = [];
  for (let from = 0; from < trajectories.length; from += TRAJECTORIES) {
    signal?.throwIfAborted();
    const some = trajectories.slice(from, from + TRAJECTORIES);
    const certain = await model.certain?.(some);
    const open: { trajectory: Trajectory; index: number }[] = [];
    for (const [i, trajectory] of some.entries()) {
      for (const [index, turn] of trajectory.turns.entries()) {
        if (certain?.[i]?.[index] !== true) open.push({ trajectory, index });
        else scored.push({ trajectory, index, prediction: turn, exact: true, f1: 1 });
      }
    }
    for (let at = 0; at < open.length; at += QUERIES) {
      signal?.throwIfAborted();
      const asked = open.slice(at, at + QUERIES);
      const predictions = await model.predict(asked.map(queryOf), signal);
      for (const [i, { trajectory, index }] of asked.entries()) {
        const prediction = predictions[i]!;
        const real = trajectory.turns[index]!;
        const exact = sameOutcome(prediction, real);
        const f1 = wordF1(prediction.observation, real.observation);
        scored.push({ trajectory, index, prediction, exact, f1 });
      }
    }
    onTurns?.(scored.length);
  }
  return scored;
}

function queryOf({ trajectory, index }: { trajectory: Trajectory; index: number }): WorldQuery {
  const { goal, context, firstObservation, turns } = trajectory;
  return {
    goal,
    context,
    firstObservation,
    turns: turns.slice(0, index),
    action: turns[index]!.action,
  };
}

/** Scores by environment, split, task type, policy and depth. */
export function fidelityReport(turns: readonly ScoredTurn[]): FidelityReport {
  const by = (key: (turn: ScoredTurn) => string): Record<string, FidelityScore> =>
    Object.fromEntries([...groupBy(turns, key)].map(([name, some]) => [name, scoreOf(some)]));
  return {
    all: scoreOf(turns),
    byEnvironment: by(({ trajectory }) => trajectory.env),
    bySplit: by(({ trajectory }) => trajectory.split),
    byType: by(({ trajectory }) => trajectory.type),
    byPolicy: by(({ trajectory }) => trajectory.policy),
    byDepth: by(({ index }) => depthOf(index)),
  };
}

/** The first wrong answers. */
export function mistakesOf(turns: readonly ScoredTurn[], most: number): readonly Mistake[] {
  return turns
    .filter(({ exact }) => !exact)
    .slice(0, most)
    .map(({ trajectory, index, prediction }) => {
      const { action, ...real } = trajectory.turns[index]!;
      return { task: trajectory.task, step: index + 1, action, real, predicted: prediction };
    });
}

/** Depths in ranges that double: single numbers would leave too few turns each. */
function depthOf(index: number): string {
  const number = index + 1;
  const from = 2 ** Math.floor(Math.log2(number));
  return from === 1 ? "1" : `${from}–${2 * from - 1}`;
}

function scoreOf(turns: readonly ScoredTurn[]): FidelityScore {
  const share = (some: readonly ScoredTurn[], is: (turn: ScoredTurn) => boolean): number =>
    some.filter(is).length / some.length;
  const reaching = turns.filter((one) => realOf(one).success);
  const called = (one: ScoredTurn): boolean => one.prediction.success === realOf(one).success;
  return {
    turns: turns.length,
    exactMatch: share(turns, ({ exact }) => exact),
    f1: turns.reduce((sum, { f1 }) => sum + f1, 0) / turns.length,
    successAccuracy: share(turns, called),
    ...(reaching.length > 0 && { successRecall: share(reaching, called) }),
    degenerate: Object.fromEntries(
      degenerations.map((kind) => [
        kind,
        turns.filter(({ prediction }) => prediction.degeneration === kind).length,
      ]),
    ),
  };
}

function realOf({ trajectory, index }: ScoredTurn): Outcome {
  return trajectory.turns[index]!;
}

/** Word-level F1: the harmonic mean of precision and recall over words, counted with repetition. */
export function wordF1(predicted: string, real: string): number {
  const predictedWords = words(predicted);
  const realWords = words(real);
  if (predictedWords.length === 0 || realWords.length === 0)
    return predictedWords.length === realWords.length ? 1 : 0;
  const left = new Map<string, number>();
  for (const word of realWords) left.set(word, (left.get(word) ?? 0) + 1);
  let common = 0;
  for (const word of predictedWords) {
    const count = left.get(word) ?? 0;
    if (count === 0) continue;
    common++;
    left.set(word, count - 1);
  }
  return (2 * common) / (predictedWords.length + realWords.length);
}

function words(text: string): readonly string[] {
  return text.split(/\s+/).filter(Boolean);
}
