/** The updates of a run as its record holds them. */
import type { Episode, Group } from "../rollout/episode.js";
import type { Checkpoint } from "../runs/checkpoints.js";
import { RunError } from "../runs/run-error.js";
import { openRun } from "../runs/run-folder.js";

/** An update of a record. */
export interface RecordedUpdate {
  readonly update: number;
  readonly groups: readonly Group[];
}

/** The episodes of each update in their groups; groups are numbered through the whole run. */
export function* updatesOf(
  episodes: Iterable<Episode>,
  groupsPerUpdate: number,
): Generator<RecordedUpdate> {
  let current = new Map<number, Episode[]>();
  let update = 0;
  const groups = (): readonly Group[] =>
    [...current.entries()]
      .sort(([a], [b]) => a - b)
      .map(([index, members]) => ({ index, task: members[0]!.task, episodes: members }));
  for (const episode of episodes) {
    const at = Math.floor(episode.group / groupsPerUpdate);
    if (at !== update && current.size > 0) {
      yield { update, groups: groups() };
      current = new Map();
    }
    update = at;
    const index = episode.group % groupsPerUpdate;
    current.set(index, [...(current.get(index) ?? []), episode]);
  }
  if (current.size > 0) yield { update, groups: groups() };
}

/** The updates in a run's folder. */
export const recordedUpdates = (
  folder: string,
  groupsPerUpdate: number,
): Iterable<RecordedUpdate> =>
  updatesOf(openRun(folder, () => undefined).episodes(), groupsPerUpdate);

/** The groups that a checkpoint's next update was drawn with before the run was interrupted. */
export function groupsAhead(
  folder: string,
  { folder: checkpoint, state }: Checkpoint,
  groupsPerUpdate: number,
): readonly Group[] {
  const run = openRun(folder, () => undefined);
  for (const { update, groups } of updatesOf(run.episodes(), groupsPerUpdate))
    if (update === state.updates) return groups.map(numbered);
  throw new RunError(
    `the record of ${folder} lacks the episodes of update ${state.updates + 1}, which weights before ${checkpoint} drew. Remove ${checkpoint} to resume from the checkpoint before it.`,
  );
}

const numbered = (group: Group): Group => ({
  ...group,
  episodes: group.episodes.map((episode) => ({ ...episode, group: group.index })),
});
