/**
 * One rollout after another, at the pace that is set: what becomes of their last, slow episodes
 * (`scheduler.ts` says it).
 */

import { setMaxListeners } from "node:events";
import type { ActingEngine } from "../engine/engine.js";
import type { Episode, Group } from "./episode.js";
import { type PaceOptions, rowsOf } from "./pace.js";
import { play, type RolloutOptions, rollout } from "./rollout.js";
import { createScheduler, type Load } from "./scheduler.js";

/** The share of a rollout's episodes after which the others are stragglers. */
const MOST = 0.9;

/** What a rollout played. */
export interface Played {
  /** The groups that are complete; those carried over from the last rollout come last. */
  readonly groups: readonly Group[];
  /** How the engine was used, if episodes have their own pace. */
  readonly pace?: PaceLoad | undefined;
}

/** What the engine did during a rollout. */
export interface PaceLoad extends Load {
  readonly seconds: number;
  /** Groups that were left to the next rollout. */
  readonly carried: number;
}

/** The load of two rollouts, one after another. */
export function together(a: PaceLoad | undefined, b: PaceLoad | undefined): PaceLoad | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return {
    busySeconds: a.busySeconds + b.busySeconds,
    calls: a.calls + b.calls,
    rows: a.rows + b.rows,
    live: Math.max(a.live, b.live),
    seconds: a.seconds + b.seconds,
    carried: b.carried,
  };
}

/** One rollout after another, at the pace that is set. */
export interface Rollouts {
  /** The engine that the policy is to ask, and how many episodes at a time (undefined: all). */
  readonly engine: ActingEngine;
  readonly batch: number | undefined;
  /** Groups that are carried over into the next rollout, which draws that many fewer tasks. */
  readonly carried: number;
  play(options: RolloutOptions): Promise<Played>;
  /** Breaks what was carried over, and closes its worlds. */
  end(): Promise<void>;
}

/** Rollouts of episodes that sample from this engine. */
export function createRollouts(engine: ActingEngine, options: PaceOptions): Rollouts {
  if (options.pace === "together")
    return {
      ...{ engine, batch: undefined, carried: 0 },
      play: async (plan) => ({ groups: await rollout(plan) }),
      end: async () => undefined,
    };
  const scheduler = createScheduler(engine, { pace: "own", rows: rowsOf(options) });
  const { stragglerSeconds, stragglers } = options;
  const lateReason = `the episode was not over ${stragglerSeconds} s after nine tenths of the others${stragglers === "carry" ? ", nor in the next update" : ""} (rollout.stragglerSeconds)`;
  let before: OpenRollout | undefined;
  /** Called whenever an episode ends. */
  let look: () => void = () => undefined;

  /** Waits until all of these are over, or the time of the stragglers of the first is. */
  const wait = (open: readonly OpenRollout[]): Promise<void> =>
    new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      let isOverdue = false;
      const end = (settle: () => void): void => {
        clearTimeout(timer);
        look = () => undefined;
        settle();
      };
      look = () => {
        if (isOverdue && open.some((one) => one.hasComplete())) return end(resolve);
        if (stragglerSeconds === undefined || open[0]!.progress < MOST) return;
        timer ??= setTimeout(() => {
          isOverdue = true;
          look();
        }, stragglerSeconds * 1000);
      };
      Promise.all(open.map(({ playing }) => playing)).then(
        () => end(resolve),
        (error: unknown) => end(() => reject(error)),
      );
      look();
    });

  const play = async (plan: RolloutOptions): Promise<Played> => {
    const started = performance.now();
    scheduler.open();
    const now = openRollout({
      ...plan,
      concurrency: plan.tasks.length * plan.groupSize,
      admission: scheduler.admission,
      onEpisode(episode) {
        plan.onEpisode?.(episode);
        look();
      },
    });
    await wait(before === undefined ? [now] : [now, before]);
    const broken = stragglers === "carry" ? before : now;
    broken?.breakOff(lateReason);
    await broken?.playing;
    const groups = [...now.takeComplete(), ...(before?.takeComplete(plan.tasks.length) ?? [])];
    before = now.left === 0 ? undefined : now;
    if (before === undefined) await now.playing;
    else scheduler.close();
    const seconds = (performance.now() - started) / 1000;
    return { groups, pace: { ...scheduler.load(), seconds, carried: now.left } };
  };

  return {
    ...{ engine: scheduler.engine, batch: 1, play },
    get carried() {
      return before?.left ?? 0;
    },
    async end() {
      before?.breakOff("the run is over");
      scheduler.open();
      await before?.playing.catch(() => undefined);
    },
  };
}

/** A rollout in progress. */
interface OpenRollout {
  /** Settles when its last episode is over. */
  readonly playing: Promise<void>;
  /** The share of its episodes that are over. */
  readonly progress: number;
  /** Groups that have not been taken. */
  readonly left: number;
  hasComplete(): boolean;
  /** Takes the complete groups; `first` numbers them anew, as groups of a later rollout. */
  takeComplete(first?: number): readonly Group[];
  /** Breaks the episodes that are still in progress, with this reason. */
  breakOff(reason: string): void;
}

interface OpenGroup extends Group {
  readonly episodes: Episode[];
}

/** Starts a rollout. */
function openRollout(plan: RolloutOptions): OpenRollout {
  const { tasks, groupSize, onEpisode } = plan;
  let over = 0;
  let groups = tasks.map((task, index): OpenGroup => ({ index, task, episodes: [] }));
  const all = groups;
  const late = new AbortController();
  setMaxListeners(0, late.signal);
  const playing = play({
    ...plan,
    late: late.signal,
    onEpisode(episode) {
      over += 1;
      all[episode.group]!.episodes.push(episode);
      onEpisode?.(episode);
    },
  });
  // It may be rejected when nothing awaits it.
  playing.catch(() => undefined);
  const isComplete = ({ episodes }: OpenGroup): boolean => episodes.length === groupSize;
  return {
    playing,
    get progress() {
      return over / (tasks.length * groupSize);
    },
    get left() {
      return groups.length;
    },
    hasComplete: () => groups.some(isComplete),
    takeComplete(first) {
      const complete = groups.filter(isComplete);
      groups = groups.filter((group) => !isComplete(group));
      return complete.map((group, at) =>
        inOrder(group, first === undefined ? group.index : first + at),
      );
    },
    breakOff: (reason) => late.abort(new Error(reason)),
  };
}

/** A group under this number, with its episodes in the order of their attempts. */
function inOrder({ episodes, ...group }: OpenGroup, index: number): Group {
  const sorted = [...episodes].sort((a, b) => a.attempt - b.attempt);
  if (index === group.index) return { ...group, episodes: sorted };
  return { ...group, index, episodes: sorted.map((episode) => ({ ...episode, group: index })) };
}
