/**
 * How long a run will take, estimated from its settings, one episode of a teacher, and a measured
 * second of the engine's work.
 */
import type { Environment } from "@pawl/core/envs/env.js";
import { UserError } from "@pawl/core/errors.js";
import { supervisedObjective } from "@pawl/core/objectives/supervised.js";
import type { EvaluatedModel } from "@pawl/core/train/evaluate.js";
import { imitationSequences } from "@pawl/core/train/sft.js";
import type { MergedSequence } from "@pawl/core/update/merge.js";
import type { TrainConfig } from "./config.js";
import { teacherEpisodes } from "./teacher-episodes.js";

/** What an update and the parts of a run take, at most: every episode as long as it may be. */
export interface TimePlan {
  readonly episodes: number;
  readonly steps: number;
  /** Tokens to learn from, of an update. */
  readonly tokens: number;
  /** Measured: tokens a second, learnt and written. */
  readonly learnt: number;
  readonly written: number;
  /** Seconds: of imitation, of each update, and of all evaluations. */
  readonly imitation: number;
  readonly update: number;
  readonly evaluation: number;
}

/** Who could show an episode. */
const teacherOf = (config: TrainConfig, environment: Environment) =>
  ([config.warmStart.teacher, "expert", "seeker"] as const).find(
    (one) => environment[one] !== undefined,
  );

/** Whether there is something to estimate, and an episode to estimate it from. */
export const hasTimePlan = (config: TrainConfig, environment: Environment): boolean =>
  (config.updates > 0 || config.warmStart.episodes > 0) &&
  teacherOf(config, environment) !== undefined;

/** Tokens of a text to learn from. */
const MEASURED_TOKENS = 128;
const MEASURED_SECONDS = 1;
/** Texts written side by side, the tokens of their prompt, and theirs. */
const ROWS = 16;
const PROMPT_TOKENS = 32;
const WRITTEN = 8;
/** A forward pass takes about a third of a forward and backward pass. */
const FORWARD = 1 / 3;

/** Undefined if no teacher shows an episode, or the engine cannot be measured without a trace. */
export async function timePlan(
  config: TrainConfig,
  model: EvaluatedModel,
): Promise<TimePlan | undefined> {
  const { environment, engine } = model;
  if (!engine.capabilities.discardGradients || !hasTimePlan(config, environment)) return undefined;
  const shown = await teacherEpisode(config, model);
  if (shown === undefined) return undefined;
  const steps = config.stepLimit ?? environment.stepLimit;
  const speed = await measure(model, shown.sequences[0]!, Math.min(ROWS, config.groupSize));
  const tokens = Math.min(shown.tokensOf(steps), episodeLimit(shown, steps, model));
  const playing = (episodes: number): number =>
    episodes *
    (steps * shown.response * speed.write +
      (tokens - steps * shown.response) * FORWARD * speed.learn);
  const { warmStart, evaluation, updates, groups, groupSize } = config;
  const episodes = groups * groupSize;
  const evaluated = evaluation.splits.reduce(
    (sum, split) => sum + Math.min(evaluation.tasks, environment.tasks(split).length),
    0,
  );
  const times = evaluation.every === 0 ? 0 : 1 + Math.ceil(updates / evaluation.every);
  return {
    ...{ episodes, steps, tokens: episodes * tokens },
    ...{ learnt: 1 / speed.learn, written: 1 / speed.write },
    imitation: warmStart.episodes * warmStart.sft.epochs * shown.tokens * speed.learn,
    update: playing(episodes) + episodes * tokens * speed.learn,
    evaluation: times * playing(evaluated),
  };
}

interface Shown {
  readonly sequences: readonly MergedSequence[];
  /** Its tokens, and those of an episode of so many steps. */
  readonly tokens: number;
  tokensOf(steps: number): number;
  /** Tokens of its mean response. */
  readonly response: number;
}

/** An episode of a teacher as it would be learnt. */
async function teacherEpisode(
  config: TrainConfig,
  model: EvaluatedModel,
): Promise<Shown | undefined> {
  const { environment } = model;
  const teacher = teacherOf(config, environment)!;
  const warmStart = { ...config.warmStart, teacher, episodes: 1, epsilon: 0, runs: [] };
  try {
    const [episode] = await teacherEpisodes(model, { ...config, warmStart });
    const sequences = imitationSequences(episode!, model, {
      observationWeight: 0,
      randomActions: false,
    });
    const tokens = sequences.reduce((sum, { ids }) => sum + ids.length, 0);
    const targets = sequences.flatMap((one) => [...Array.from(one.targets ?? [])]);
    const taken = episode!.steps.length;
    // A conversation that is one sequence has its opening once.
    const opening = sequences.length === 1 ? Math.max(0, targets.indexOf(1)) : 0;
    return {
      sequences,
      tokens,
      tokensOf: (steps) => Math.round(opening + ((tokens - opening) / taken) * steps),
      response: targets.filter((target) => target > 0).length / taken,
    };
  } catch (error) {
    // A run that plays the teacher says what is wrong; one that does not has no need of it.
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/** An episode that is one sequence ends where the context does. */
const episodeLimit = ({ sequences }: Shown, steps: number, { engine }: EvaluatedModel): number =>
  engine.capabilities.maxContext * (sequences.length === 1 ? 1 : steps);

/** Seconds for a token: learnt, and written beside others. Nothing of it stays in the engine. */
async function measure({ engine }: EvaluatedModel, sequence: MergedSequence, rows: number) {
  const cut = <T extends ArrayLike<number>>(values: T) =>
    Array.from(values).slice(0, MEASURED_TOKENS);
  const ids = cut(sequence.ids);
  const targets = ids.map((_, i) => (i > 0 ? 1 : 0));
  const sample = { ids, targets, inputs: { weight: targets.map((one) => one / ids.length) } };
  const learnOnce = () => engine.forwardBackward([sample], supervisedObjective);
  const prompt = ids.slice(0, PROMPT_TOKENS);
  const writeOnce = () => engine.sample([{ prompt, count: rows, maxTokens: WRITTEN, seed: 0 }]);
  try {
    // The first time of each prepares the computation.
    await learnOnce();
    const learn = (await secondsOf(learnOnce)) / ids.length;
    await writeOnce();
    const write = (await secondsOf(writeOnce)) / (rows * WRITTEN);
    return { learn, write };
  } finally {
    await engine.discardGradients();
  }
}

/** The seconds that some work takes, done again until a second has passed. */
async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  const passed = (): number => (performance.now() - start) / 1000;
  let times = 0;
  do {
    await work();
    times += 1;
  } while (passed() < MEASURED_SECONDS / 2);
  return passed() / times;
}
