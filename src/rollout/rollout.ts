/**
 * Rollouts: groups of episodes, played by a policy.
 *
 * Episodes run in lanes. The episodes of a lane move in step, so that a policy which answers many
 * prompts at once (an engine) gets them together; a policy that answers one at a time (a chat model) has
 * lanes of one, of which several run side by side.
 *
 * A world that fails breaks its episode, and so does a policy that answers one at a time (a chat model). A policy that
 * answers for many, and any engine (`engine/ask.ts`), ends the rollout: the quick episodes alone would be no fair sample.
 */
import { setImmediate } from "node:timers/promises";
import { EngineFailure } from "../engine/ask.js";
import type { Environment, Task } from "../envs/env.js";
import { UserError } from "../errors.js";
import { mixSeed } from "../random.js";
import type { PromptStyle } from "../text/prompt.js";
import type { Episode, Group } from "./episode.js";
import { type EpisodePlan, type EpisodeRun, startEpisode } from "./episode-run.js";
import type { Policy, Reply, Situation } from "./policy.js";

/** In-process worlds never wait, so every so often signals and timers are let in. */
const BREATHE_EVERY_MS = 20;

/** After this many broken episodes, with none whole and not all of one task, a rollout gives up. */
const BROKEN_IN_A_ROW = 8;

/** What to play, and who is told of it. */
export interface RolloutOptions {
  readonly environment: Environment;
  readonly policy: Policy;
  readonly style: PromptStyle;
  /** One task per group. */
  readonly tasks: readonly Task[];
  /** Episodes per group. */
  readonly groupSize: number;
  readonly seed: number;
  /** Steps after which an episode ends; default: the environment's own limit. */
  readonly stepLimit?: number;
  /** Refused actions in a row after which an episode ends; default: any number. */
  readonly patience?: number;
  /** Lanes that run side by side; default 1. More helps where the policy or the world waits. */
  readonly lanes?: number;
  /** Stops the rollout; episodes in progress are dropped, finished ones were reported. */
  readonly signal?: AbortSignal;
  readonly onStart?: (plan: EpisodePlan) => void;
  readonly onStep?: (plan: EpisodePlan) => void;
  readonly onEpisode?: (episode: Episode) => void;
  /** Told of what went wrong without breaking an episode. */
  readonly onProblem?: (message: string) => void;
}

/** Plays all groups and returns them in order; broken episodes are among them, marked as such. */
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

/** Plays all groups and keeps nothing: each episode goes to `onEpisode` as it ends. */
export async function play(options: RolloutOptions): Promise<void> {
  const waiting = planLanes(options);
  const breathe = createBreather();
  const firstBroken: Episode[] = [];
  let anyWhole = false;
  const report = (episode: Episode): void => {
    options.onEpisode?.(episode);
    if (episode.stop !== "broken") anyWhole = true;
    else if (!anyWhole) firstBroken.push(episode);
  };
  // Asked after a lane: its other episodes may be whole, and end later than those that broke at once.
  const giveUpIfHopeless = (): void => {
    if (anyWhole || firstBroken.length < BROKEN_IN_A_ROW) return;
    const tasks = new Set(firstBroken.map((episode) => episode.task.id));
    if (tasks.size === 1 && options.tasks.length > 1) return;
    throw new UserError(
      `the first ${firstBroken.length} episodes all broke, so the rollout was given up. The last one: ${firstBroken.at(-1)!.error}`,
    );
  };
  const worker = async (): Promise<void> => {
    for (let lane = waiting.shift(); lane !== undefined; lane = waiting.shift()) {
      await playLane(lane, options, report);
      giveUpIfHopeless();
      await breathe();
    }
  };
  try {
    await Promise.all(Array.from({ length: options.lanes ?? 1 }, worker));
  } finally {
    // When one lane fails, the others stop after the one they are playing.
    waiting.length = 0;
  }
}

/** Lets the event loop turn, when it has not for a while. */
function createBreather(): () => Promise<void> | undefined {
  let last = performance.now();
  return () => {
    if (performance.now() - last < BREATHE_EVERY_MS) return undefined;
    return setImmediate().then(() => {
      last = performance.now();
    });
  };
}

/** A lane: rounds that follow one another, each a set of episodes that move in step. */
type Lane = readonly (readonly EpisodePlan[])[];

function planLanes(options: RolloutOptions): Lane[] {
  const { environment, policy, style, seed, groupSize } = options;
  const stepLimit = options.stepLimit ?? environment.stepLimit;
  const groups = options.tasks.map((task, group) =>
    Array.from(
      { length: groupSize },
      (_, attempt): EpisodePlan => ({
        environment,
        style,
        task,
        group,
        attempt,
        seed: mixSeed(seed, group, attempt),
        stepLimit,
        patience: options.patience ?? Number.POSITIVE_INFINITY,
        policy: policy.name,
      }),
    ),
  );
  if (policy.sequential) return groups.map((plans) => plans.map((plan) => [plan]));
  const plans = groups.flat();
  const lanes: Lane[] = [];
  for (let i = 0; i < plans.length; i += policy.batch)
    lanes.push([plans.slice(i, i + policy.batch)]);
  return lanes;
}

async function playLane(
  lane: Lane,
  options: RolloutOptions,
  report: (episode: Episode) => void,
): Promise<void> {
  for (const round of lane) {
    options.signal?.throwIfAborted();
    for (const plan of round) options.onStart?.(plan);
    const runs = await Promise.all(round.map(startEpisode));
    try {
      await playRound(runs, options, report);
    } finally {
      await Promise.all(runs.map((run) => run.close()));
    }
  }
}

async function playRound(
  runs: readonly EpisodeRun[],
  options: RolloutOptions,
  report: (episode: Episode) => void,
): Promise<void> {
  let live = await settle(runs, options, report);
  while (live.length > 0) {
    options.signal?.throwIfAborted();
    const situations = live.flatMap((run) => situationOf(run));
    live = await settle(live, options, report);
    if (live.length === 0) return;
    const replies = await ask(situations, options);
    if (replies instanceof Error) for (const run of live) run.breakOff(replies);
    else await Promise.all(live.map((run, i) => run.advance(replies[i]!)));
    for (const run of live) options.onStep?.(run.plan);
    live = await settle(live, options, report);
  }
}

/** The policy's replies, or why there are none; one that answers for many episodes at once throws. */
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
    // Only those that are still running would be missing, and they are not just any.
    if (error instanceof EngineFailure || policy.batch > 1) throw error;
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** What the policy sees next; nothing where the world cannot say it, which breaks the episode. */
function situationOf(run: EpisodeRun): readonly Situation[] {
  try {
    return [run.situation()];
  } catch (error) {
    run.breakOff(error);
    return [];
  }
}

/** Reports the episodes that are over and returns the others. */
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
      // The episode itself is whole: the policy goes on without what it would have learnt from it.
      options.signal?.throwIfAborted();
      options.onProblem?.(
        `${options.policy.name} learnt nothing from ${episode.group}.${episode.attempt}: ${(error as Error).message}`,
      );
    }
  }
  return runs.filter((run) => run.episode === undefined);
}
