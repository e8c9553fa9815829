/** A whole run folder verified: what is there, and what is damaged or lost. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Episode } from "../rollout/episode.js";
import { checkpointFolders, readCheckpoint } from "./checkpoints.js";
import { brokenSeals, isSealed } from "./checksums.js";
import { editedManifest } from "./manifest.js";
import { changedMetrics } from "./metrics-file.js";
import { readRecords } from "./record-file.js";
import { eventsPath, metricsPath, openRun } from "./run-folder.js";
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
  const run = openRun(folder, (message) => metricsProblems.push(message));
  const { manifest, active } = run;
  const metrics = run.metrics();
  const reader = openRun(folder, (message) => episodeProblems.push(message));
  return [
    {
      part: "manifest",
      found: `${manifest.kind}, ${manifest.status}${active ? ", being written now" : ""}`,
      problems: [editedManifest(folder) ?? []].flat(),
    },
    checked("episodes", episodeProblems, () => countEpisodes(reader.episodes())),
    checkMetrics(folder, metrics.length, metricsProblems),
    ...checkpointFolders(folder).map(checkCheckpoint),
    ...FOLDERS.filter((name) => existsSync(join(folder, name))).map((name) =>
      checkFolder(name, join(folder, name)),
    ),
    // The last record of a run that is being written may not be whole yet.
    ...(existsSync(eventsPath(folder)) && !active ? [checkTensorboard(eventsPath(folder))] : []),
    ...readdirSync(folder)
      .filter((name) => name.endsWith(".jsonl.gz") && name !== "episodes.jsonl.gz")
      .map((name) => checkRecords(name, join(folder, name))),
    ...asides(folder),
  ];
}

/** The folders of a run that hold models and tokenizers, besides checkpoints. */
const FOLDERS = ["reference", "tokenizer", "model"];

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

function checkMetrics(folder: string, lines: number, problems: readonly string[]): CheckedPart {
  const changed = changedMetrics(metricsPath(folder));
  const compared = changed === undefined ? "" : ", checksums compared";
  return {
    part: "metrics",
    found: `${lines} lines${compared}`,
    problems: [...problems, ...(changed ?? [])],
  };
}

function countEpisodes(episodes: Iterable<Episode>): string {
  const groups = new Set<number>();
  let count = 0;
  for (const { group } of episodes) {
    count++;
    groups.add(group);
  }
  const missing = gaps([...groups].sort((a, b) => a - b));
  const lost = missing.length === 0 ? "" : `; none of groups ${missing.join(", ")}`;
  return `${count.toLocaleString("en-GB")} episodes in ${groups.size} groups${lost}`;
}

/** What is missing between sorted numbers: `0–2`, `4` for 3, 5. */
function gaps(numbers: readonly number[]): readonly string[] {
  return numbers.flatMap((number, i) => {
    const from = (numbers[i - 1] ?? -1) + 1;
    if (from === number) return [];
    return from === number - 1 ? `${from}` : `${from}–${number - 1}`;
  });
}

function checkRecords(name: string, path: string): CheckedPart {
  const problems: string[] = [];
  return checked(name, problems, () => {
    let count = 0;
    for (const _ of readRecords(path, ({ message }) => problems.push(message))) count++;
    return `${count.toLocaleString("en-GB")} records`;
  });
}

function checkCheckpoint(folder: string): CheckedPart {
  const part = `checkpoint ${folder.split(/[\\/]/).at(-1)}`;
  const { found, problems } = checkFolder(part, folder);
  try {
    const { updates, optimizerSteps } = readCheckpoint(folder).state;
    return {
      part,
      found: `${updates} updates, ${optimizerSteps} optimiser steps; ${found}`,
      problems,
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
