/**
 * The actor: plays the episodes of one update after another, at the pace that is set.
 *
 * With overlap, the weights that an update starts from are frozen, and play the next update while
 * this one is learnt. So which weights drew what does not depend on time: update n + 1 is drawn by
 * the weights before update n, the first two by the first weights. Its episodes are recorded when
 * they have been drawn, before the checkpoint after update n, and a resumed run learns from the
 * record.
 */
import type { ActingEngine, Engine } from "../engine/engine.js";
import type { Environment, Task } from "../envs/env.js";
import { mixSeed } from "../random.js";
import type { Group } from "../rollout/episode.js";
import type { RolloutOptions } from "../rollout/rollout.js";
import { createRollouts, type Played as PlayedTasks, together } from "../rollout/rollouts.js";
import type { PromptStyle } from "../text/prompt.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { countingEpisodes, type OnActivity } from "./activity.js";
import { playTrees } from "./branching.js";
import { createCurriculum, earnedTheSame, replacing } from "./curriculum.js";
import { updateSeed } from "./draws.js";
import { modelPolicy } from "./evaluate.js";
import { hintsFor } from "./hints.js";
import type { RecordedUpdate } from "./recorded-updates.js";
import type { ReferenceScores } from "./reference-scores.js";
import type { RlOptions } from "./rl-types.js";
import { mayBeStale } from "./staleness.js";

/** What acting works with. */
export interface ActorContext {
  readonly engine: Engine;
  readonly environment: Environment;
  readonly tokenizer: Tokenizer;
  readonly style: PromptStyle;
  /** The first update's groups, if they were drawn before the run was interrupted. */
  readonly ahead?: readonly Group[] | undefined;
  /** The updates that a resumed run has recorded, by which its curriculum goes on. */
  readonly recorded?: Iterable<RecordedUpdate> | undefined;
  /** The reference, if it scores while the policy acts. */
  readonly reference?: ReferenceScores | undefined;
  readonly signal?: AbortSignal;
  /** Called with episodes that were drawn ahead: they are to be recorded. */
  onEpisodes(groups: readonly Group[], index: number): Promise<void>;
  readonly onActivity?: OnActivity | undefined;
}

/** What was played for an update. */
interface Played extends PlayedTasks {
  /** How many of its episodes were expected to succeed, if the curriculum says so. */
  readonly expected?: number | undefined;
}

/** The episodes of an update. */
interface Drawn extends Played {
  /** Seconds that were spent waiting for them before they were asked for. */
  readonly waited: number;
  /** Seconds of the rollout in which nobody waited for it; undefined if somebody always did. */
  readonly overlapped: number | undefined;
  /** Whether they are in the record already. */
  readonly isRecorded: boolean;
}

/** Plays for one update after another. */
export interface Actor {
  draw(index: number): Promise<Drawn>;
  /**
   * With overlap: begins to play an update with the present weights, which have learnt this many,
   * unless there is no such update.
   */
  begin(index: number, weights: number): Promise<void>;
  /** Waits until what was begun is recorded; whether there is such an update. */
  settle(): Promise<boolean>;
  /** Ends what is still being played. */
  end(): Promise<void>;
}

/** An update that is played while another is learnt. */
interface Ahead {
  readonly played: Promise<Played & { readonly seconds: number }>;
  waited: number;
}

/** Settings of acting. */
export type ActorOptions = Pick<
  RlOptions,
  | "split"
  | "groups"
  | "groupSize"
  | "curriculum"
  | "stepLimit"
  | "invalidActionLimit"
  | "maxTokens"
  | "temperature"
  | "rollout"
  | "overlap"
  | "updates"
  | "seed"
>;

/** An actor that plays with the engine's weights. */
export function createActor(context: ActorContext, options: ActorOptions): Actor {
  const { engine, environment, style, onActivity } = context;
  const { groups, groupSize, stepLimit, invalidActionLimit, maxTokens, temperature } = options;
  const { branch } = options.rollout;
  const sampling = { maxTokens, temperature };
  const isAhead = options.overlap > 0;
  const rollouts = createRollouts(isAhead ? actingOf(engine) : engine, options.rollout);
  const { engine: acting, batch } = rollouts;
  const policy = modelPolicy({ ...context, engine: acting, batch, sampling });
  const stop = new AbortController();
  const interrupt = (): void => stop.abort(context.signal!.reason);
  if (context.signal?.aborted) interrupt();
  context.signal?.addEventListener("abort", interrupt, { once: true });
  const curriculum = createCurriculum(environment, options);
  let expectedLast: number | undefined;
  for (const { update, groups: before } of context.recorded ?? []) {
    expectedLast = curriculum.expected(before);
    curriculum.see(update, before);
  }
  // What a run that was interrupted had drawn is in its record.
  let ahead: Ahead | undefined = context.ahead && {
    played: Promise.resolve({ groups: context.ahead, expected: expectedLast, seconds: 0 }),
    waited: 0,
  };

  /** Plays a group of each of these tasks. */
  const playTasks = async (tasks: readonly Task[], seed: number): Promise<Played> => {
    const episodes = (tasks.length + rollouts.carried) * groupSize;
    const counted = countingEpisodes("playing", episodes, onActivity);
    // With overlap the engine learns meanwhile, and scores afterwards.
    const watcher = isAhead ? undefined : context.reference?.watch(groupSize);
    const plan: RolloutOptions = {
      ...{ environment, policy, style, tasks, groupSize, seed, signal: stop.signal },
      ...(watcher !== undefined && { onStep: watcher.onStep }),
      onEpisode(episode) {
        counted.onEpisode?.();
        watcher?.onEpisode(episode);
      },
      ...(stepLimit !== undefined && { stepLimit }),
      ...(invalidActionLimit !== undefined && { invalidActionLimit }),
    };
    const { hints: teacher } = options.curriculum;
    const where = { environment, style, stepLimit, seed, signal: stop.signal };
    const hints = teacher && (await hintsFor(tasks, { ...where, teacher, share: curriculum.hint }));
    if (branch.points > 0) {
      const how = { groupSize, branch, ...(hints && { hints }) };
      return playTrees((part) => rollouts.play({ ...plan, ...part }), how);
    }
    return rollouts.play({ ...plan, ...(hints && { forkOf: (group) => hints[group] }) });
  };

  /** Plays other tasks in place of those whose episodes all earned the same. */
  const redraw = async (first: Played, seed: number): Promise<Played> => {
    let played = first;
    let left = options.curriculum.redraw;
    const taken = played.groups.map(({ task }) => task);
    for (let round = 1; left > 0; round++) {
      const equal = played.groups.filter(earnedTheSame).slice(0, left);
      if (equal.length === 0) break;
      left -= equal.length;
      const again = mixSeed(seed, "redraw", round);
      const tasks = curriculum.draw(again, equal.length, taken);
      taken.push(...tasks);
      const more = await playTasks(tasks, again);
      const instead = new Map(equal.map((group, i) => [group, replacing(group, more.groups[i]!)]));
      played = {
        groups: played.groups.map((group) => instead.get(group) ?? group),
        pace: together(played.pace, more.pace),
      };
    }
    return played;
  };

  const play = async (index: number, weights: number): Promise<Played> => {
    const seed = updateSeed(options, index);
    const tasks = curriculum.draw(seed, groups).slice(0, groups - rollouts.carried);
    const played = await redraw(await playTasks(tasks, seed), seed);
    const expected = curriculum.expected(played.groups);
    curriculum.see(index, played.groups);
    if (!mayBeStale(options)) return { ...played, expected };
    // What was carried over comes last, and was begun by the weights before.
    const drewIt = ({ index: place }: Group) => (place < tasks.length ? weights : weights - 1);
    return {
      ...{ ...played, expected },
      groups: played.groups.map((group) => drawnWith(group, drewIt(group))),
    };
  };

  const begin = async (index: number, weights: number): Promise<Ahead> => {
    await engine.snapshotActor();
    const started = performance.now();
    const played = play(index, weights).then(async (update) => {
      const seconds = (performance.now() - started) / 1000;
      await context.onEpisodes(update.groups, index);
      return { ...update, seconds };
    });
    // It may fail while nobody is waiting for it yet.
    played.catch(() => undefined);
    return { played, waited: 0 };
  };

  return {
    async draw(index) {
      if (!isAhead)
        return {
          ...(await play(index, index)),
          waited: 0,
          overlapped: undefined,
          isRecorded: false,
        };
      const early = ahead;
      const { played, waited } = early ?? (await begin(index, index));
      const { seconds, ...update } = await played;
      const overlapped = early === undefined ? undefined : Math.max(0, seconds - waited);
      return { ...update, waited, overlapped, isRecorded: true };
    },
    async begin(index, weights) {
      ahead = isAhead && index < options.updates ? await begin(index, weights) : undefined;
    },
    async settle() {
      if (ahead === undefined) return false;
      const started = performance.now();
      await ahead.played;
      ahead.waited = (performance.now() - started) / 1000;
      return true;
    },
    async end() {
      context.signal?.removeEventListener("abort", interrupt);
      stop.abort(new Error("the run is over"));
      await Promise.allSettled([ahead?.played, rollouts.end()]);
    },
  };
}

/** The engine as it acts while it learns. */
const actingOf = (engine: Engine): ActingEngine => ({
  get capabilities() {
    return engine.capabilities;
  },
  sample: (requests) => engine.sample(requests, { weights: "actor" }),
});

const drawnWith = (group: Group, weights: number): Group => ({
  ...group,
  episodes: group.episodes.map((episode) => ({ ...episode, weights })),
});
