/**
 * Rollouts that do not wait for their slowest episodes.
 *
 * When nine tenths of a rollout's episodes are over, the others have some seconds left. Then they
 * are broken, or their groups are carried over: those that are complete go on to learning, the
 * others continue where they are in the next rollout and are learnt with it. Between two rollouts
 * nothing is sampled for them. A group is carried over once; what is still unfinished then breaks.
 */
import { setMaxListeners } from "node:events";
import type { Episode, Group } from "./episode.js";
import type { Gate } from "./gate.js";
import { play, type RolloutOptions } from "./rollout.js";

/** What happens to the last episodes of a rollout. */
export interface StragglerOptions {
  /** Seconds they have left when nine tenths are over (default: as long as they take). */
  readonly stragglerSeconds?: number | undefined;
  /** Default: break. */
  readonly stragglers?: "break" | "carry" | undefined;
}

/** The share of a rollout's episodes after which the others are stragglers. */
const MOST = 0.9;

/** One rollout after another, at the pace of its episodes. */
export interface Rollouts {
  /** How many groups are carried over into the next rollout: it needs so many tasks fewer. */
  readonly carried: number;
  /** The groups that are complete; those carried over from the last rollout come last. */
  play(options: RolloutOptions): Promise<readonly Group[]>;
  /** Breaks what was carried over, and closes its worlds. */
  end(): Promise<void>;
}

/** A rollout in progress. */
interface Open {
  readonly groupSize: number;
  readonly groups: readonly OpenGroup[];
  readonly late: AbortController;
  readonly playing: Promise<void>;
}

interface OpenGroup extends Group {
  readonly episodes: Episode[];
}

/** Rollouts of episodes that ask the gate's engine. */
export function createRollouts(gate: Gate, options: StragglerOptions): Rollouts {
  let before: Open | undefined;
  /** Called whenever an episode ends. */
  let look: () => void = () => undefined;

  const start = (rollout: RolloutOptions): Open => {
    const groups = rollout.tasks.map((task, index): OpenGroup => ({ index, task, episodes: [] }));
    const late = new AbortController();
    setMaxListeners(0, late.signal);
    const playing = play({
      ...rollout,
      concurrency: rollout.tasks.length * rollout.groupSize,
      admission: gate.admission,
      late: late.signal,
      onEpisode(episode) {
        groups[episode.group]!.episodes.push(episode);
        rollout.onEpisode?.(episode);
        look();
      },
    });
    // It may fail when nobody is waiting for it any more.
    playing.catch(() => undefined);
    return { groupSize: rollout.groupSize, groups, late, playing };
  };

  /** Waits until both rollouts are over, or the time of the stragglers is. */
  const wait = (now: Open, carried: Open | undefined): Promise<void> =>
    new Promise((resolve, reject) => {
      const all = carried === undefined ? [now] : [now, carried];
      const total = now.groups.length * now.groupSize;
      let timer: NodeJS.Timeout | undefined;
      let isOverdue = false;
      const end = (settle: () => void): void => {
        clearTimeout(timer);
        look = () => undefined;
        settle();
      };
      look = () => {
        const over = now.groups.reduce((sum, { episodes }) => sum + episodes.length, 0);
        if (isOverdue && all.some((open) => open.groups.some((group) => isComplete(open, group))))
          return end(resolve);
        if (options.stragglerSeconds === undefined || over < MOST * total) return;
        timer ??= setTimeout(() => {
          isOverdue = true;
          look();
        }, options.stragglerSeconds * 1000);
      };
      for (const { playing } of all) playing.catch((error: unknown) => end(() => reject(error)));
      Promise.all(all.map(({ playing }) => playing)).then(
        () => end(resolve),
        () => undefined,
      );
      look();
    });

  return {
    get carried() {
      return before?.groups.length ?? 0;
    },
    async play(rollout) {
      gate.open();
      const now = start(rollout);
      await wait(now, before);
      const broken = options.stragglers !== "carry" ? [now] : before === undefined ? [] : [before];
      for (const open of broken) {
        open.late.abort(new Error(straggled(options)));
        await open.playing;
      }
      const complete = now.groups.filter((group) => isComplete(now, group));
      const first = rollout.tasks.length;
      const carried = (before?.groups ?? []).map((group, at) => numbered(group, first + at));
      const left = now.groups.filter((group) => !isComplete(now, group));
      before = left.length === 0 ? undefined : { ...now, groups: left };
      if (before === undefined) await now.playing;
      else gate.close();
      return [...complete, ...carried].map(inOrder);
    },
    async end() {
      before?.late.abort(new Error("the run is over"));
      gate.open();
      await before?.playing.catch(() => undefined);
    },
  };
}

const isComplete = ({ groupSize }: Open, { episodes }: OpenGroup): boolean =>
  episodes.length === groupSize;

const numbered = (group: OpenGroup, index: number): OpenGroup => ({
  ...group,
  index,
  episodes: group.episodes.map((episode) => ({ ...episode, group: index })),
});

const inOrder = (group: OpenGroup): Group => ({
  ...group,
  episodes: [...group.episodes].sort((a, b) => a.attempt - b.attempt),
});

const straggled = ({ stragglerSeconds, stragglers }: StragglerOptions): string =>
  `the episode was not over ${stragglerSeconds} s after nine tenths of the others${stragglers === "carry" ? ", nor in the next update" : ""} (rollout.stragglerSeconds)`;
