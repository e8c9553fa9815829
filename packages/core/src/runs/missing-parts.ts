/** What should be in a run folder, and is not: updates in its record, checkpoints, its start. */
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { checkpointFolders, readCheckpoint } from "./checkpoints.js";
import { groupsPerUpdate } from "./manifest.js";
import type { MetricsLine } from "./metrics-file.js";
import type { RecordedRun } from "./run-folder.js";
import { metricsPath } from "./run-paths.js";

/** The numbers below `end` that are missing, as ranges: `0–2`, `4`. */
export function missingFrom(numbers: Iterable<number>, end: number): readonly string[] {
  const present = new Set(numbers);
  const ranges: string[] = [];
  for (let from = 0; from < end; from++) {
    if (present.has(from)) continue;
    let to = from;
    while (to + 1 < end && !present.has(to + 1)) to++;
    ranges.push(from === to ? `${from}` : `${from}–${to}`);
    from = to;
  }
  return ranges;
}

/** What of `updates` updates has no metrics or no episodes, in words; `seen` are those that have. */
export function lostUpdates(
  what: "metrics" | "episodes",
  seen: Iterable<number>,
  updates: number,
): string | undefined {
  // People count from 1, as the progress does.
  const missing = missingFrom([...seen].map((update) => update + 1).concat(0), updates + 1);
  return missing.length === 0 ? undefined : `the ${what} of ${updatesIn(missing)} are missing`;
}

/** How many updates the record of a run should hold. */
function updatesDone(folder: string, metrics: readonly MetricsLine[]): number {
  const last = metrics.reduce((most, { update }) => Math.max(most, update ?? -1), -1);
  const newest = checkpointFolders(folder).at(-1);
  return Math.max(last + 1, newest === undefined ? 0 : Number(basename(newest)));
}

/** Says so if updates of a run have no metrics. */
export function lostMetrics(
  { folder, manifest }: RecordedRun,
  metrics: readonly MetricsLine[],
): string | undefined {
  // Other commands do not write a line for every update.
  if (!["train", "rwml"].includes(manifest.kind)) return undefined;
  const seen = metrics.map(({ update }) => update ?? -1);
  return lostUpdates("metrics", seen, updatesDone(folder, metrics));
}

/** Says so if updates of a run have no episodes; `groups` are those that have. */
export function lostEpisodes(
  { folder, manifest }: RecordedRun,
  groups: ReadonlySet<number>,
  metrics: readonly MetricsLine[],
): string | undefined {
  const each = groupsPerUpdate(manifest);
  if (each === undefined) return undefined;
  const seen = [...groups].map((group) => Math.floor(group / each));
  return lostUpdates("episodes", seen, updatesDone(folder, metrics));
}

/** Says which checkpoints of a run cannot be read. */
export function unreadableCheckpoints(folder: string): readonly string[] {
  return checkpointFolders(folder).flatMap((one) => {
    try {
      readCheckpoint(one);
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
}

function updatesIn(ranges: readonly string[]): string {
  const isOne = ranges.length === 1 && !ranges[0]!.includes("–");
  return `update${isOne ? "" : "s"} ${ranges.join(", ")}`;
}

/** Says so if a run has none of its checkpoints any more: beginning again would delete its record. */
export function lostCheckpoints(run: RecordedRun): string | undefined {
  const { folder, manifest } = run;
  const { checkpointEvery } = manifest.config;
  if (typeof checkpointEvery !== "number" || checkpointEvery === 0) return undefined;
  if (checkpointFolders(folder).length > 0) return undefined;
  const last = run.metrics().reduce((most, { update = -1 }) => Math.max(most, update), -1);
  // A process may end between an update's line and its checkpoint.
  if (last < (manifest.status === "done" ? 0 : checkpointEvery)) return undefined;
  return `${folder} has ${last + 1} updates in its record, but no checkpoint: resuming would begin again and delete them. Restore ${join(folder, "checkpoints")}; or, to begin again, remove ${metricsPath(folder)} first.`;
}

/** What a run with checkpoints needs to resume, and does not have. */
export function lostFolders({ folder, manifest }: RecordedRun): readonly string[] {
  const needed: Readonly<Record<string, readonly string[]>> = {
    train: ["reference", "tokenizer"],
    rwml: ["reference", "tokenizer"],
    "wm-train": ["tokenizer"],
  };
  if (checkpointFolders(folder).length === 0) return [];
  return (needed[manifest.kind] ?? []).filter((name) => !existsSync(join(folder, name)));
}
