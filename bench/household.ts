/** The speed, difficulty and text statistics of the household world. */

import type { Env, Environment } from "@pawl/core/envs/env.js";
import { household } from "@pawl/core/envs/household/household.js";
import { createRandom } from "@pawl/core/random.js";
import type { z } from "zod";

/** Speed and memory of the household world, one thread, at its default difficulty. */
export interface HouseholdSpeed {
  readonly household_steps_per_s: number;
  readonly household_reset_us: number;
  readonly household_clone_us: number;
  readonly household_rss_growth_mib: number;
}

/** Difficulty and text of one split. */
export interface HouseholdSurvey {
  readonly split: string;
  readonly randomSuccessPercent: number;
  readonly expertSuccessPercent: number;
  readonly expertMeanSteps: number;
  readonly expertMeanStepsByFamily: Readonly<Record<string, number>>;
  readonly words: number;
  readonly meanObservationWords: number;
}

type Options = z.input<typeof household.options>;

function openHousehold(options: Options = {}): Environment {
  return household.open(household.options.parse(options));
}

/** Plays episodes with uniformly random admissible actions and counts the steps. */
function playRandom(environment: Environment, episodes: number, seed: number): number {
  const env = environment.create() as Env;
  const tasks = environment.tasks("train");
  const random = createRandom(seed);
  let steps = 0;
  for (let episode = 0; episode < episodes; episode++) {
    env.reset(tasks[episode % tasks.length]!, episode);
    for (let step = 0; step < environment.stepLimit; step++) {
      steps++;
      if (env.step(random.pick(env.admissibleActions!())).done) break;
    }
  }
  return steps;
}

/** Steps per second of random play: the median of ten slices, since others may delay one. */
export function stepsPerSecond(environment: Environment, episodes: number): number {
  const slices = Array.from({ length: 10 }, (_, slice) => {
    const start = performance.now();
    const steps = playRandom(environment, episodes / 10, slice);
    return (steps / (performance.now() - start)) * 1000;
  }).sort((a, b) => a - b);
  return Math.round(slices[5]!);
}

function secondsOf(run: () => void): number {
  const start = performance.now();
  run();
  return (performance.now() - start) / 1000;
}

/** Resident memory, after a garbage collection if the process was started with `--expose-gc`. */
function residentMib(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss() / 2 ** 20;
}

/**
 * Measures the household world: a random policy that asks for the admissible actions at every step.
 */
export function measureHousehold(episodes = 100_000): HouseholdSpeed {
  const environment = openHousehold();
  playRandom(environment, 5_000, 1);
  const before = residentMib();
  const speed = stepsPerSecond(environment, episodes);
  const growth = residentMib() - before;
  const env = environment.create() as Env;
  const tasks = environment.tasks("train");
  const resets = 20_000;
  const resetSeconds = secondsOf(() => {
    for (let i = 0; i < resets; i++) env.reset(tasks[i % tasks.length]!, i);
  });
  const cloneSeconds = secondsOf(() => {
    for (let i = 0; i < resets; i++) env.clone();
  });
  return {
    household_steps_per_s: speed,
    household_reset_us: (resetSeconds / resets) * 1e6,
    household_clone_us: (cloneSeconds / resets) * 1e6,
    household_rss_growth_mib: growth,
  };
}

function wordsOf(text: string): string[] {
  return text.match(/[a-z]+ \d+|[A-Za-z]+|\d+|[^\sA-Za-z\d]/g) ?? [];
}

/**
 * How often a random policy and how fast the expert solve the tasks of a split, and how much text
 * that makes.
 */
export function surveyHousehold(
  split: string,
  options: Options = {},
  episodes = 6_000,
): HouseholdSurvey {
  const environment = openHousehold(options);
  const env = environment.create() as Env;
  const tasks = environment.tasks(split);
  const random = createRandom(3);
  const words = new Set<string>();
  let observations = 0;
  let observationWords = 0;
  const note = (text: string): number => {
    const found = wordsOf(text);
    for (const word of found) words.add(word);
    return found.length;
  };
  const play = (index: number, choose: () => string): { steps: number; success: boolean } => {
    note(env.reset(tasks[index % tasks.length]!, index));
    note(env.goal);
    for (let step = 1; step <= environment.stepLimit; step++) {
      const action = choose();
      note(action);
      const { observation, done } = env.step(action);
      observations++;
      observationWords += note(observation);
      if (done) return { steps: step, success: true };
    }
    return { steps: environment.stepLimit, success: false };
  };
  let randomSuccesses = 0;
  let expertSuccesses = 0;
  const byFamily = new Map<string, { steps: number; episodes: number }>();
  for (let index = 0; index < episodes; index++) {
    if (play(index, () => random.pick(env.admissibleActions!())).success) randomSuccesses++;
    const { steps, success } = play(index, () => environment.expert!(env));
    if (success) expertSuccesses++;
    const family = byFamily.get(env.taskType) ?? { steps: 0, episodes: 0 };
    family.steps += steps;
    family.episodes++;
    byFamily.set(env.taskType, family);
  }
  const all = [...byFamily.values()].reduce((sum, family) => sum + family.steps, 0);
  return {
    split,
    randomSuccessPercent: (100 * randomSuccesses) / episodes,
    expertSuccessPercent: (100 * expertSuccesses) / episodes,
    expertMeanSteps: all / episodes,
    expertMeanStepsByFamily: Object.fromEntries(
      [...byFamily].map(([name, family]) => [name, family.steps / family.episodes]),
    ),
    words: words.size,
    meanObservationWords: observationWords / observations,
  };
}
