/** A rollout in progress, whose groups can be taken as they are completed. */
import { setMaxListeners } from "node:events";
import type { Episode, Group } from "./episode.js";
import { play, type RolloutOptions } from "./rollout.js";

/** A rollout in progress. */
export interface OpenRollout {
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
export function openRollout(plan: RolloutOptions): OpenRollout {
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
