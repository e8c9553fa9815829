/** The list of runs: what one wants to see of each without opening it. */
import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import { flatten } from "../report/run-groups.js";
import { type Manifest, readManifest } from "../runs/manifest.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import { metricsPath } from "../runs/run-folder.js";
import { findLock } from "../runs/run-lock.js";
import type { RunList, RunRow, RunState } from "./api.js";
import { findRuns } from "./find-runs.js";
import { lastMetrics } from "./metrics-table.js";
import { checkFile, pathInside } from "./safe-path.js";

/** Most settings that are named in the list. */
const MOST_DIFFERENCES = 6;
/** Updates whose duration gives the time left. */
const RECENT = 20;

interface Known {
  readonly stamp: string;
  readonly manifest: Manifest;
  readonly lines: readonly MetricsLine[];
  readonly settings: ReadonlyMap<string, string>;
}

/** Reads runs, and remembers what has not changed since. */
export interface RunReader {
  list(): RunList;
  row(id: string): RunRow;
  manifest(id: string): Manifest;
}

/** A reader of the runs below a folder. */
export function createRunReader(root: string): RunReader {
  const known = new Map<string, Known>();
  const read = (id: string): Known => {
    const folder = pathInside(root, id);
    for (const name of ["manifest.json", "metrics.jsonl"]) checkFile(root, id, name);
    const stamp = `${stampOf(join(folder, "manifest.json"))} ${stampOf(metricsPath(folder))}`;
    const before = known.get(id);
    if (before?.stamp === stamp) return before;
    const manifest = readManifest(folder);
    const settings = flatten(manifest.config);
    const now = { stamp, manifest, lines: lastMetrics(folder), settings };
    known.set(id, now);
    return now;
  };
  return {
    list() {
      const problems: string[] = [];
      const found = findRuns(root).flatMap((id) => {
        try {
          return [{ id, ...read(id) }];
        } catch (error) {
          // A run that is removed while it is listed is no problem.
          if ((error as { status?: number }).status !== 404)
            problems.push((error as Error).message);
          return [];
        }
      });
      for (const id of known.keys()) if (!found.some((run) => run.id === id)) known.delete(id);
      const differing = differingPaths(found);
      const runs = found
        .map((run) => rowOf(join(root, run.id), run.id, run, differing.get(kindKey(run)) ?? []))
        .sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
      return { folder: root, runs, problems };
    },
    row: (id) => rowOf(join(root, id), id, read(id), []),
    manifest: (id) => read(id).manifest,
  };
}

function stampOf(path: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return "none";
  }
}

const kindKey = ({ manifest }: Known): string => `${manifest.kind} ${envOf(manifest)}`;

/** For each kind of run in one world: the settings that are not the same in all of them. */
function differingPaths(runs: readonly Known[]): ReadonlyMap<string, readonly string[]> {
  const values = new Map<string, Map<string, Set<string>>>();
  const counts = new Map<string, number>();
  for (const run of runs) {
    const key = kindKey(run);
    counts.set(key, (counts.get(key) ?? 0) + 1);
    const paths = values.get(key) ?? new Map<string, Set<string>>();
    values.set(key, paths);
    for (const [path, value] of run.settings)
      paths.set(path, (paths.get(path) ?? new Set()).add(value));
  }
  return new Map(
    [...values].map(([key, paths]) => [
      key,
      counts.get(key)! < 2
        ? []
        : [...paths].flatMap(([path, { size }]) => (size > 1 ? [path] : [])),
    ]),
  );
}

function rowOf(
  folder: string,
  id: string,
  { manifest, lines, settings }: Known,
  differing: readonly string[],
): RunRow {
  const { kind, seed, createdAt, finishedAt, config } = manifest;
  const state = stateOf(folder, manifest);
  const last = lines.findLast(({ update }) => update !== undefined && update >= 0);
  const update = last?.update === undefined ? null : last.update + 1;
  const updates = typeof config.updates === "number" ? config.updates : null;
  return {
    id,
    kind,
    state,
    env: envOf(manifest),
    seed,
    createdAt,
    finishedAt: finishedAt ?? null,
    update,
    updates,
    ...successOf(manifest, lines),
    secondsLeft: state === "running" ? timeLeft(lines, update, updates) : null,
    differs: Object.fromEntries(
      differing
        .flatMap((path) => (settings.has(path) ? [[path, settings.get(path)!.slice(0, 60)]] : []))
        .slice(0, MOST_DIFFERENCES),
    ),
    groupKey: keyOf(kind, settings),
  };
}

function keyOf(kind: string, settings: ReadonlyMap<string, string>): string {
  const sorted = [...settings].sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash("sha1")
    .update(JSON.stringify([kind, sorted]))
    .digest("hex")
    .slice(0, 12);
}

/** A run marked as running that no process is writing to was killed. */
function stateOf(folder: string, { status }: Manifest): RunState {
  if (status !== "running") return status;
  try {
    return findLock(folder).owner === undefined ? "killed" : "running";
  } catch {
    return "killed";
  }
}

function envOf({ config: { env, data } }: Manifest): string {
  if (Array.isArray(data)) return data.join(", ");
  return String((env as { readonly name?: unknown } | undefined)?.name ?? "–");
}

/** The newest of: the last evaluation, success while training, the summary of the run. */
function successOf(
  { summary }: Manifest,
  lines: readonly MetricsLine[],
): Pick<RunRow, "success" | "successOf"> {
  const names = ["wm.exactMatch", "heldOut.reward", "train.success"];
  for (const line of lines.toReversed()) {
    const name = Object.keys(line).find((key) => /^eval\..+\.success$/.test(key));
    if (name !== undefined) return { success: line[name]!, successOf: name };
  }
  for (const name of names) {
    const line = lines.findLast((one) => one[name] !== undefined);
    if (line !== undefined) return { success: line[name]!, successOf: name };
  }
  return summary?.success === undefined
    ? { success: null, successOf: null }
    : { success: summary.success, successOf: "success" };
}

function timeLeft(
  lines: readonly MetricsLine[],
  update: number | null,
  updates: number | null,
): number | null {
  if (update === null || updates === null) return null;
  const times = lines.slice(-RECENT).flatMap((line) => {
    const parts = Object.entries(line).filter(([name]) => name.startsWith("seconds."));
    return parts.length === 0 ? [] : [parts.reduce((sum, [, seconds]) => sum + seconds, 0)];
  });
  if (times.length === 0) return null;
  const mean = times.reduce((sum, seconds) => sum + seconds, 0) / times.length;
  return Math.max(0, updates - update) * mean;
}
