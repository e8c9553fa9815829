/** A whole run folder verified: what is there, and what is damaged or lost. */
import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import type { Episode } from "../rollout/episode.js";
import {
  checkpointFolders,
  foreignCheckpoint,
  foreignRecords,
  readCheckpoint,
} from "./checkpoints.js";
import { brokenSeals, isSealed } from "./checksums.js";
import { editedManifest, groupsPerUpdate, readManifest } from "./manifest.js";
import { hasMetricsSums, type MetricsLine } from "./metrics-file.js";
import { readRecords } from "./record-file.js";
import { openRun, type RecordedRun } from "./run-folder.js";
import { eventsPath, metricsPath } from "./small-file.js";
import { checkEvents } from "./tensorboard.js";

/** What was found out about one part of a run folder. */
export interface CheckedPart {
  readonly part: string;
  readonly found: string;
  /** What is damaged, missing or lost; nothing if it is whole. */
  readonly problems: readonly string[];
}

/** Reads everything in a run folder; only a folder without a readable manifest is an error. */
export function checkRun(folder: string): readonly CheckedPart[] {
  const metricsProblems: string[] = [];
  const episodeProblems: string[] = [];
  // A folder without a readable manifest is refused here.
  readManifest(folder);
  const edited = editedManifest(folder);
  const into = (problems: string[]) => (message: string) => {
    if (message !== edited) problems.push(message);
  };
  const run = openRun(folder, into(metricsProblems));
  const { manifest, active } = run;
  const metrics = run.metrics();
  const reader = openRun(folder, into(episodeProblems));
  return [
    {
      part: "manifest",
      found: `${manifest.kind}, ${manifest.status}${active ? ", being written now" : ""}`,
      problems: edited === undefined ? [] : [edited],
    },
    checked("episodes", episodeProblems, () => {
      const { groups, found } = countEpisodes(reader.episodes());
      episodeProblems.push(...[lostEpisodes(run, groups, metrics) ?? []].flat());
      return found;
    }),
    checkMetrics(run, metrics, metricsProblems),
    ...checkpointFolders(folder).map((one) => checkCheckpoint(folder, one)),
    ...[lostCheckpoints(run) ?? []].flat().map((problem) => missing("checkpoints", problem)),
    ...FOLDERS.filter((name) => existsSync(join(folder, name))).map((name) =>
      checkFolder(name, join(folder, name)),
    ),
    ...lostFolders(run).map((name) => missing(name, `${join(folder, name)} is missing`)),
    // The last record of a run that is being written may not be whole yet.
    ...(existsSync(eventsPath(folder)) && !active ? [checkTensorboard(eventsPath(folder))] : []),
    ...readdirSync(folder)
      .filter((name) => name.endsWith(".jsonl.gz") && name !== "episodes.jsonl.gz")
      .map((name) => checkRecords(folder, name)),
    ...asides(folder),
  ];
}

const missing = (part: string, problem: string): CheckedPart => ({
  ...{ part, found: "missing", problems: [problem] },
});

/** The folders of a run that hold models and tokenizers, besides checkpoints. */
const FOLDERS = ["reference", "tokenizer", "model", "teacher"];

function checkTensorboard(folder: string): CheckedPart {
  const { records, problems } = checkEvents(folder);
  return { part: "tensorboard", found: `${records} records`, problems };
}

/** The result of a reader; what it throws is a problem too. */
function checked(part: string, problems: string[], read: () => string): CheckedPart {
  let found = "unreadable";
  try {
    found = read();
  } catch (error) {
    problems.push((error as Error).message);
  }
  return { part, found, problems };
}

function checkMetrics(
  run: RecordedRun,
  lines: readonly MetricsLine[],
  problems: readonly string[],
): CheckedPart {
  const compared = hasMetricsSums(metricsPath(run.folder)) ? ", checksums compared" : "";
  const lost = lostMetrics(run, lines);
  return {
    part: "metrics",
    found: `${lines.length} lines${compared}`,
    problems: lost === undefined ? problems : [...problems, lost],
  };
}

function countEpisodes(episodes: Iterable<Episode>) {
  const groups = new Set<number>();
  let count = 0;
  let end = 0;
  for (const { group } of episodes) {
    count++;
    groups.add(group);
    end = Math.max(end, group + 1);
  }
  const missing = missingFrom(groups, end);
  const lost = missing.length === 0 ? "" : `; none of groups ${missing.join(", ")}`;
  const found = `${count.toLocaleString("en-GB")} episodes in ${groups.size} groups${lost}`;
  return { groups, found };
}

function checkRecords(folder: string, name: string): CheckedPart {
  const path = join(folder, name);
  const problems: string[] = [];
  return checked(name, problems, () => {
    let count = 0;
    for (const record of readRecords(path, ({ message }) => problems.push(message))) {
      const foreign = count++ === 0 ? foreignRecords(folder, path, record) : undefined;
      if (foreign !== undefined) problems.push(foreign);
    }
    if (count === 0 && problems.length === 0) problems.push(`${path} is empty`);
    return `${count.toLocaleString("en-GB")} records`;
  });
}

function checkCheckpoint(run: string, folder: string): CheckedPart {
  const part = `checkpoint ${basename(folder)}`;
  const { found, problems } = checkFolder(part, folder);
  try {
    const checkpoint = readCheckpoint(folder);
    const { updates, optimizerSteps } = checkpoint.state;
    return {
      part,
      found: `${updates} updates, ${optimizerSteps} optimiser steps; ${found}`,
      problems: [...problems, ...[foreignCheckpoint(run, checkpoint) ?? []].flat()],
    };
  } catch (error) {
    return { part, found, problems: [...problems, (error as Error).message] };
  }
}

function checkFolder(part: string, folder: string): CheckedPart {
  const found = isSealed(folder) ? "checksums compared" : "an older version wrote no checksums";
  return { part, found, problems: brokenSeals(folder) };
}

/** What an earlier resume moved aside. */
function asides(folder: string): readonly CheckedPart[] {
  return readdirSync(folder)
    .filter((name) => name.includes(".damaged"))
    .map((name) => ({
      part: name,
      found: "kept aside",
      problems: [`${join(folder, name)} holds damaged records that an earlier resume set aside`],
    }));
}

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
