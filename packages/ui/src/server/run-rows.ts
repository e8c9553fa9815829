/** The list of runs: what one wants to see of each without opening it. */
import { createHash } from "node:crypto";
import { type Dirent, lstatSync, readdirSync, type Stats } from "node:fs";
import { join } from "node:path";
import { hasManifest, type Manifest, readManifest } from "@pawl/core/runs/manifest.js";
import { type MetricsLine, sumsPath } from "@pawl/core/runs/metrics-file.js";
import {
  type Headline,
  headlineAfter,
  secondsOf,
  summaryHeadline,
} from "@pawl/core/runs/run-list.js";
import { findLock } from "@pawl/core/runs/run-lock.js";
import { metricsPath } from "@pawl/core/runs/small-file.js";
import { settingsOf } from "../report/run-groups.js";
import type { RunList, RunRow, RunState } from "./api.js";
import { lastLines, type MetricsPlace, readMetricsFrom } from "./metrics-table.js";
import { checkLink, pathInside } from "./safe-path.js";

/** Updates whose duration gives the time left. */
const RECENT = 20;

/** The end of a run's metrics. */
interface RunTail {
  /** How far it was read. */
  readonly place: MetricsPlace;
  /** Whether lines were left out because they are damaged. */
  readonly isDamaged: boolean;
  /** Updates done. */
  readonly update: number | null;
  /** Seconds that the latest updates took. */
  readonly seconds: readonly number[];
  readonly headline: Headline | undefined;
}

/** Reads the end of a run's metrics; of a file that was read before, only what is new. */
export function readTail(folder: string, before?: RunTail): RunTail {
  if (before !== undefined) {
    const { lines, place, damaged } = readMetricsFrom(folder, before.place);
    // A resumed run writes its metrics anew, without the updates that it repeats.
    if (place.file === before.place.file && place.end >= before.place.end)
      return {
        ...lines.reduce(withLine, before),
        place,
        isDamaged: before.isDamaged || damaged.length > 0,
      };
  }
  // Old lines matter only if they have an evaluation.
  const { lines, place, damaged } = lastLines(folder, (texts) => {
    const evaluated = texts.slice(0, -RECENT).findLast((text) => text.includes('"eval.'));
    return [...(evaluated === undefined ? [] : [evaluated]), ...texts.slice(-RECENT)];
  });
  const none = { update: null, seconds: [], headline: undefined };
  return lines.reduce<RunTail>(withLine, { ...none, place, isDamaged: damaged.length > 0 });
}

function withLine(tail: RunTail, line: MetricsLine): RunTail {
  const { update } = line;
  const parts = Object.keys(line).filter((name) => name.startsWith("seconds."));
  const took = parts.reduce((sum, name) => sum + line[name]!, 0);
  return {
    ...tail,
    update: update !== undefined && update >= 0 ? update + 1 : tail.update,
    seconds: parts.length === 0 ? tail.seconds : [...tail.seconds, took].slice(-RECENT),
    headline: headlineAfter(tail.headline, line),
  };
}

/** How long the rest will take, if the last updates are any guide. */
export function secondsLeft({ update, seconds }: RunTail, updates: number | null): number | null {
  if (update === null || updates === null || seconds.length === 0) return null;
  const mean = seconds.reduce((sum, one) => sum + one, 0) / seconds.length;
  return Math.max(0, updates - update) * mean;
}

/** Runs lie a few folders deep; a whole disk is not searched. */
const DEEPEST = 4;
/** Folders that are looked into. */
const MOST_FOLDERS = 20_000;

/**
 * The paths of runs relative to the root, with `/`; "" if the root is a run itself. Symbolic links
 * and hidden folders are not followed.
 */
function findRuns(root: string): readonly string[] {
  if (hasManifest(root)) return [""];
  const found: string[] = [];
  let open: readonly string[] = [""];
  let looked = 0;
  for (let depth = 0; depth < DEEPEST && open.length > 0; depth++) {
    const next: string[] = [];
    for (const path of open) {
      if (++looked > MOST_FOLDERS) return found;
      for (const entry of entriesOf(join(root, path))) {
        if (!entry.isDirectory() || /^\.|^node_modules$/.test(entry.name)) continue;
        const below = path === "" ? entry.name : `${path}/${entry.name}`;
        (hasManifest(join(root, below)) ? found : next).push(below);
      }
    }
    open = next;
  }
  return found;
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // Removed since it was listed, or not ours to read.
    return [];
  }
}

/** Most settings that are named in the list. */
const MOST_DIFFERENCES = 6;

/** What is read of a run's manifest, as long as that stays the same. */
interface RunSummary {
  readonly stamp: string;
  readonly manifest: Manifest;
  readonly settings: ReadonlyMap<string, string>;
  /** Runs of the same kind in the same world: what differs among them is named. */
  readonly kindKey: string;
  readonly groupKey: string;
}

interface RunEntry {
  readonly stamp: string;
  readonly described: RunSummary;
  readonly tail: RunTail;
}

/** A row, and what it was made from. */
interface RowEntry {
  readonly run: RunEntry;
  readonly paths: Values;
  readonly row: RunRow;
}

/** By setting, how many runs have which value. */
type Values = ReadonlyMap<string, ReadonlyMap<string, number>>;

const NONE: Values = new Map();

/** Reads runs, and remembers what has not changed since. */
export interface RunReader {
  /** A row that says the same as before is the same object. */
  list(): RunList;
  row(id: string): RunRow;
  manifest(id: string): Manifest;
}

/** A reader of the runs below a folder. */
export function createRunReader(root: string): RunReader {
  const known = new Map<string, RunEntry>();
  const rows = new Map<string, RowEntry>();
  let differing: Differing = { of: [], paths: new Map() };

  /** For a folder that is known to be inside the root. */
  const read = (id: string, folder: string): RunEntry => {
    const manifestStatus = statusOf(join(folder, "manifest.json"));
    const metricsStatus = statusOf(metricsPath(folder));
    checkLink(root, id, "manifest.json", manifestStatus);
    checkLink(root, id, "metrics.jsonl", metricsStatus);
    checkLink(root, id, "metrics.crc32", statusOf(sumsPath(metricsPath(folder))));
    const described = stampOf(manifestStatus);
    const stamp = `${described} ${stampOf(metricsStatus)}`;
    const before = known.get(id);
    if (before?.stamp === stamp) return before;
    const now = {
      stamp,
      described:
        before?.described.stamp === described ? before.described : describe(folder, described),
      tail: readTail(folder, before?.tail),
    };
    known.set(id, now);
    return now;
  };

  const show = (id: string, run: RunEntry): RunRow => {
    const paths = differing.paths.get(run.described.kindKey) ?? NONE;
    const before = rows.get(id);
    const isSame = before !== undefined && before.run === run && before.paths === paths;
    // Whether a run is still running is not in its files alone.
    if (isSame && run.described.manifest.status !== "running") return before.row;
    const now = rowOf(join(root, id), id, run, paths);
    const row = JSON.stringify(before?.row) === JSON.stringify(now) ? before!.row : now;
    rows.set(id, { run, paths, row });
    return row;
  };

  return {
    list() {
      const problems: string[] = [];
      const found = findRuns(root).flatMap((id) => {
        try {
          // Links are not among the runs that are found, so their folders are inside.
          return [{ id, run: read(id, join(root, id)) }];
        } catch (error) {
          // A run that is removed while it is listed is no problem.
          if ((error as { status?: number }).status !== 404)
            problems.push((error as Error).message);
          return [];
        }
      });
      const ids = new Set(found.map(({ id }) => id));
      for (const id of known.keys())
        if (!ids.has(id)) {
          known.delete(id);
          rows.delete(id);
        }
      differing = differingPaths(
        found.map(({ run }) => run.described),
        differing,
      );
      for (const { id, run } of found)
        if (run.tail.isDamaged)
          problems.push(
            `${id === "" ? "this run" : id}: metrics.jsonl has damaged lines, which are left out`,
          );
      const runs = found
        .map(({ id, run }) => show(id, run))
        .sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
      return { folder: root, runs, problems };
    },
    row: (id) => rowOf(join(root, id), id, read(id, pathInside(root, id)), NONE),
    manifest: (id) => read(id, pathInside(root, id)).described.manifest,
  };
}

const statusOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });

const stampOf = (status: Stats | undefined): string =>
  status === undefined ? "none" : `${status.ino} ${status.size} ${status.mtimeMs}`;

function describe(folder: string, stamp: string): RunSummary {
  const manifest = readManifest(folder);
  const settings = settingsOf(manifest);
  return {
    stamp,
    manifest,
    settings,
    kindKey: `${manifest.kind} ${envOf(manifest)}`,
    groupKey: keyOf(manifest.kind, settings),
  };
}

interface Differing {
  readonly of: readonly RunSummary[];
  /** For each kind of run in one world: the settings that are not the same in all of them. */
  readonly paths: ReadonlyMap<string, Values>;
}

function differingPaths(of: readonly RunSummary[], before: Differing): Differing {
  if (of.length === before.of.length && of.every((one, i) => one === before.of[i])) return before;
  const values = new Map<string, Map<string, Map<string, number>>>();
  for (const { kindKey, settings } of of) {
    const paths = values.get(kindKey) ?? new Map<string, Map<string, number>>();
    values.set(kindKey, paths);
    for (const [path, value] of settings) {
      const counts = paths.get(path) ?? new Map<string, number>();
      paths.set(path, counts.set(value, (counts.get(value) ?? 0) + 1));
    }
  }
  return {
    of,
    paths: new Map(
      [...values].map(([key, paths]) => [
        key,
        new Map([...paths].filter(([, counts]) => counts.size > 1)),
      ]),
    ),
  };
}

/** The settings of a run that few others share, the rarest first. */
function differsIn(settings: ReadonlyMap<string, string>, differing: Values) {
  return [...differing]
    .flatMap(([path, counts]) => {
      const value = settings.get(path);
      return value === undefined ? [] : [{ path, value, count: counts.get(value)! }];
    })
    .sort((a, b) => a.count - b.count)
    .slice(0, MOST_DIFFERENCES)
    .map(({ path, value }) => [path, value.slice(0, 60)]);
}

function rowOf(
  folder: string,
  id: string,
  { described: { manifest, settings, groupKey }, tail }: RunEntry,
  differing: Values,
): RunRow {
  const { kind, seed, createdAt, config, summary } = manifest;
  const state = stateOf(folder, manifest);
  const updates = typeof config.updates === "number" ? config.updates : null;
  const headline = tail.headline ?? summaryHeadline(summary);
  return {
    id,
    kind,
    state,
    env: envOf(manifest),
    seed,
    createdAt,
    update: tail.update,
    updates,
    success: headline?.success ?? null,
    successOf: headline?.of ?? null,
    interval: headline?.interval ?? null,
    secondsLeft: state === "running" ? secondsLeft(tail, updates) : null,
    seconds: secondsOf({ manifest }) ?? null,
    model: modelOf(manifest),
    differs: Object.fromEntries(differsIn(settings, differing)),
    groupKey,
  };
}

function keyOf(kind: string, settings: ReadonlyMap<string, string>): string {
  const sorted = [...settings].sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify([kind, sorted]))
    .digest("hex")
    .slice(0, 12);
}

/** A run marked as running that no process is writing to was killed. */
function stateOf(folder: string, { status }: Manifest): RunState {
  if (status !== "running") return status;
  try {
    return findLock(folder).owner?.seemsActive === true ? "running" : "killed";
  } catch {
    return "killed";
  }
}

/** The start model's name, also of a file or folder elsewhere. */
function modelOf({ config: { model } }: Manifest): string | null {
  const start = typeof model === "string" ? model : (model as { start?: unknown } | null)?.start;
  return typeof start === "string"
    ? (start.split(/[/\\]/).findLast((part) => part !== "") ?? null)
    : null;
}

function envOf({ config: { env, data } }: Manifest): string {
  if (Array.isArray(data)) return data.join(", ");
  return String((env as { readonly name?: unknown } | undefined)?.name ?? "–");
}
