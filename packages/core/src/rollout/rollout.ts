/**
 * Rollouts: groups of episodes, played by a policy.
 *
 * The episodes of a batch advance in lock-step, so that a policy that answers many prompts at once
 * (an engine) gets them together. A policy that answers one at a time (a chat model) has batches of
 * one episode, and several workers play them concurrently.
 *
 * If a world fails, its episode is broken; the same goes for a policy that answers one at a time.
 * If a policy that answers for many episodes fails, or any engine (`packages/core/src/engine/ask.ts`), the rollout
 * ends: only the quick episodes would be left, a biased sample.
 */
import { setMaxListeners } from "node:events";
import { setImmediate } from "node:timers/promises";
import { EngineFailure } from "../engine/ask.js";
import type { Environment, Task } from "../envs/env.js";
import { UserError } from "../errors.js";
import { mixSeed } from "../random.js";
import type { PromptStyle } from "../text/prompt.js";
import type { Episode, EpisodePlan, Fork, Group, Step } from "./episode.js";
import { type EpisodeRun, startEpisode } from "./episode-run.js";
import type { Policy, Reply, Situation } from "./policy.js";

/** In-process worlds never wait, so signals and timers get a turn this often. */
const YIELD_EVERY_MS = 20;

/**
 * The rollout gives up if this many episodes are broken, none is whole and they are not all of one
 * task.
 */
const BROKEN_IN_A_ROW = 8;

/** Where batches wait until they may start. */
export interface Admission {
  enter(): Promise<void>;
  leave(): void;
}

/** What to play, and callbacks. */
export interface RolloutOptions {
  readonly environment: Environment;
  readonly policy: Policy;
  readonly style: PromptStyle;
  /** One task per group. */
  readonly tasks: readonly Task[];
  /** Episodes per group. */
  readonly groupSize: number;
  /** The number of each group's first attempt (default: 0). */
  readonly firstAttempt?: number;
  /** Where an attempt branches off another episode (default: all begin with their task). */
  readonly forkOf?: (group: number, attempt: number) => Fork | undefined;
  readonly seed: number;
  /** Maximum steps per episode (default: the environment's limit). */
  readonly stepLimit?: number;
  /** An episode ends after this many invalid actions in a row (default: no limit). */
  readonly invalidActionLimit?: number;
  /** Batches played concurrently (default: 1). More helps if the policy or the world waits. */
  readonly concurrency?: number;
  /** Lets an episode start when there is room for it (default: at once). */
  readonly admission?: Admission;
  /** Breaks the episodes that are still in progress, with its reason. */
  readonly late?: AbortSignal;
  /** Stops the rollout: episodes in progress are dropped, finished ones have been reported. */
  readonly signal?: AbortSignal;
  /** Called before every decision of a policy that does not play by itself. */
  readonly onSituation?: (situation: Situation) => void;
  readonly onStart?: (plan: EpisodePlan) => void;
  /** Called after each of an episode's steps, with all it has taken so far. */
  readonly onStep?: (plan: EpisodePlan, steps: readonly Step[]) => void;
  readonly onEpisode?: (episode: Episode) => void;
  /** Callback for problems that do not break an episode. */
  readonly onProblem?: (message: string) => void;
}

/** Plays all groups and returns them in order, including broken episodes, marked as such. */
export async function rollout(options: RolloutOptions): Promise<readonly Group[]> {
  const groups = options.tasks.map((task, index) => ({ index, task, episodes: [] as Episode[] }));
  await play({
    ...options,
    onEpisode(episode) {
      groups[episode.group]!.episodes.push(episode);
      options.onEpisode?.(episode);
    },
  });
  for (const group of groups) group.episodes.sort((a, b) => a.attempt - b.attempt);
  return groups;
}

/** Plays all groups and keeps nothing: each episode is passed to `onEpisode` when it ends. */
export async function play(options: RolloutOptions): Promise<void> {
  // Every world that answers later listens to it: many at once are no leak.
  for (const signal of [options.signal, options.late])
    if (signal !== undefined) setMaxListeners(0, signal);
  const waiting = planBatches(options);
  const yieldNow = createYielder();
  const firstBroken: Episode[] = [];
  let anyWhole = false;
  const report = (episode: Episode): void => {
    options.onEpisode?.(episode);
    if (episode.stop !== "broken") anyWhole = true;
    else if (!anyWhole) firstBroken.push(episode);
  };
  // Checked after a whole batch: its other episodes may be whole and end later than those that
  // broke.
  const giveUpIfHopeless = (): void => {
    if (anyWhole || firstBroken.length < BROKEN_IN_A_ROW) return;
    const tasks = new Set(firstBroken.map((episode) => episode.task.id));
    if (tasks.size === 1 && options.tasks.length > 1) return;
    throw allBroke(`the first ${firstBroken.length} episodes all broke, so the rollout gave up`);
  };
  const allBroke = (what: string): UserError =>
    new UserError(
      `${what}. The first error, of task ${firstBroken[0]!.task.id}: ${firstBroken[0]!.error}`,
    );
  const worker = async (): Promise<void> => {
    while (waiting.length > 0) {
      await options.admission?.enter();
      try {
        const queue = waiting.shift();
        if (queue !== undefined) await playQueue(queue, options, report);
      } finally {
        options.admission?.leave();
      }
      giveUpIfHopeless();
      await yieldNow();
    }
  };
  try {
    await Promise.all(Array.from({ length: workersOf(options) }, worker));
  } finally {
    // When one worker fails, the others stop after their current batch.
    waiting.length = 0;
  }
  const count = firstBroken.length;
  if (!anyWhole && count > 0)
    throw allBroke(count === 1 ? "the only episode broke" : `all ${count} episodes broke`);
}

/** Yields to the event loop if it has not had a turn for a while. */
function createYielder(): () => Promise<void> | undefined {
  let last = performance.now();
  return () => {
    if (performance.now() - last < YIELD_EVERY_MS) return undefined;
    return setImmediate().then(() => {
      last = performance.now();
    });
  };
}

/** Batches to play one after another; the episodes of a batch advance in lock-step. */
type BatchQueue = readonly (readonly EpisodePlan[])[];

function planBatches(options: RolloutOptions): BatchQueue[] {
  const { environment, policy, style, seed, groupSize } = options;
  const stepLimit = options.stepLimit ?? environment.stepLimit;
  const { firstAttempt = 0 } = options;
  const groups = options.tasks.map((task, group) =>
    Array.from({ length: groupSize }, (_, i) => firstAttempt + i).map(
      (attempt): EpisodePlan => ({
        environment,
        style,
        task,
        group,
        attempt,
        seed: mixSeed(seed, group, attempt),
        fork: options.forkOf?.(group, attempt),
        stepLimit,
        invalidActionLimit: options.invalidActionLimit ?? Number.POSITIVE_INFINITY,
        policy: policy.name,
        signal: options.signal,
        late: options.late,
      }),
    ),
  );
  if (policy.sequential) return groups.map((plans) => plans.map((plan) => [plan]));
  const plans = groups.flat();
  const { parallel = Number.POSITIVE_INFINITY } = environment;
  const size = Math.min(policy.batch, Math.floor(parallel / workersOf(options)));
  const queues: BatchQueue[] = [];
  for (let i = 0; i < plans.length; i += size) queues.push([plans.slice(i, i + size)]);
  return queues;
}

/** Batches played concurrently: no more than the environment has room for. */
function workersOf({ concurrency = 1, environment }: RolloutOptions): number {
  return Math.min(concurrency, environment.parallel ?? concurrency);
}

async function playQueue(
  queue: BatchQueue,
  options: RolloutOptions,
  report: (episode: Episode) => void,
): Promise<void> {
  for (const batch of queue) {
    options.signal?.throwIfAborted();
    for (const plan of batch) options.onStart?.(plan);
    if (options.policy.play !== undefined) {
      await playAlone(batch, options, report);
      continue;
    }
    const runs = await Promise.all(batch.map(startEpisode));
    try {
      await playBatch(runs, options, report);
    } finally {
      await Promise.all(runs.map((run) => closeRun(run, options)));
    }
  }
}

/** Episodes of a policy that plays them by itself, all at the same time. */
async function playAlone(
  batch: readonly EpisodePlan[],
  { policy, onStep }: RolloutOptions,
  report: (episode: Episode) => void,
): Promise<void> {
  const played = await Promise.allSettled(
    batch.map(async (plan) => {
      const episode = await policy.play!(plan);
      report(episode);
      onStep?.(plan, episode.steps);
    }),
  );
  // Nothing is left running when the rollout ends.
  for (const one of played) if (one.status === "rejected") throw one.reason;
}

/** A world that cannot be closed is left behind: its episode is over, and others need their turn. */
async function closeRun(run: EpisodeRun, { onProblem }: RolloutOptions): Promise<void> {
  try {
    await run.close();
  } catch (error) {
    onProblem?.(`a world of task ${run.plan.task.id} did not close: ${(error as Error).message}`);
  }
}

async function playBatch(
  runs: readonly EpisodeRun[],
  options: RolloutOptions,
  report: (episode: Episode) => void,
): Promise<void> {
  // An interrupted reset is not the world's fault.
  options.signal?.throwIfAborted();
  let live = await settle(runs, options, report);
  while (live.length > 0) {
    options.signal?.throwIfAborted();
    if (options.late?.aborted) for (const run of live) run.breakOff(options.late.reason);
    live = await settle(live, options, report);
    const situations = live.flatMap((run) => situationOf(run, options));
    live = await settle(live, options, report);
    if (live.length === 0) return;
    const replies = await ask(situations, options);
    if (replies instanceof Error) for (const run of live) run.breakOff(replies);
    else await Promise.all(live.map((run, i) => advance(run, replies[i]!, options)));
    for (const run of live) options.onStep?.(run.plan, run.steps);
    live = await settle(live, options, report);
  }
}

/** The policy's replies, or the error. Throws if the policy answers for many episodes at once. */
async function ask(
  situations: readonly Situation[],
  { policy, signal }: RolloutOptions,
): Promise<readonly Reply[] | Error> {
  try {
    const replies = await policy.act(situations, signal);
    if (replies.length === situations.length) return replies;
    throw new Error(
      `policy ${policy.name} gave ${replies.length} replies to ${situations.length} situations`,
    );
  } catch (error) {
    signal?.throwIfAborted();
    // The episodes still running would be missing, and they are not a random sample.
    if (error instanceof EngineFailure || policy.batch > 1) throw error;
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Applies a reply; what goes wrong breaks the episode, unless the engine failed. */
async function advance(run: EpisodeRun, reply: Reply, { signal }: RolloutOptions): Promise<void> {
  try {
    await run.advance(reply);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof EngineFailure) throw error;
    run.breakOff(error);
  }
}

/** What the policy sees next; empty if the world fails to say it, which breaks the episode. */
function situationOf(run: EpisodeRun, { onSituation }: RolloutOptions): readonly Situation[] {
  try {
    const situation = run.situation();
    onSituation?.(situation);
    return [situation];
  } catch (error) {
    run.breakOff(error);
    return [];
  }
}

/** Reports the finished episodes and returns the others. */
async function settle(
  runs: readonly EpisodeRun[],
  options: RolloutOptions,
  report: (episode: Episode) => void,
): Promise<readonly EpisodeRun[]> {
  for (const { episode } of runs) {
    if (episode === undefined) continue;
    report(episode);
    try {
      if (episode.stop !== "broken") await options.policy.finished?.(episode, options.signal);
    } catch (error) {
      // The episode itself is whole: the policy continues without what it would have learnt from
      // it.
      options.signal?.throwIfAborted();
      options.onProblem?.(
        `${options.policy.name} learnt nothing from ${episode.group}.${episode.attempt}: ${(error as Error).message}`,
      );
    }
  }
  return runs.filter((run) => run.episode === undefined);
}
