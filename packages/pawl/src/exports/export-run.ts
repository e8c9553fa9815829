/** Exports the episodes of a run for other programs, in one pass over its record. */
import { existsSync, readdirSync, rmdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { writeFolderAtomically } from "@pawl/core/files/atomic-file.js";
import { writeError } from "@pawl/core/files/io-error.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { packageVersion } from "@pawl/core/version.js";
import { episodeJson } from "./episode-json.js";
import { writeInspectLog } from "./inspect-log.js";
import { writeParquet } from "./parquet-file.js";
import { sharegptRecords } from "./sharegpt-lines.js";
import { episodeName, lines, type Source, writePieces } from "./source.js";
import { readably, type SpokenMessage, spokenIn } from "./spoken.js";
import { verifiersEpisode } from "./verifiers-episode.js";

// Episodes as sessions for the Hugging Face hub's trace viewer: a folder with one `.jsonl` for each
// episode, whose first line names the session, and the card of a data set.

/** The hub takes at most 10,000 files in one folder. */
const PER_FOLDER = 1000;

/** Fills a folder with sessions. */
async function writeHubTraces(folder: string, source: Source): Promise<void> {
  let count = 0;
  let made = "";
  for (const episode of source.episodes()) {
    const part = String(Math.floor(count++ / PER_FOLDER)).padStart(4, "0");
    const file = join(folder, "sessions", part, `${episodeName(episode)}.jsonl`);
    if (made !== part) await mkdir(dirname(file), { recursive: true });
    made = part;
    await writeFile(file, [...lines(sessionOf(episode, source))].join(""));
  }
  await writeFile(join(folder, "README.md"), datasetCard(source, count));
}

function* sessionOf(episode: Episode, source: Source): Generator<unknown> {
  const { task, success, stop } = episode;
  yield {
    type: "session",
    harness: "pawl",
    id: `${source.name}/${episodeName(episode)}`,
    name: episode.goal.slice(0, 120) || task.id,
    task: task.id,
    taskType: task.type,
    split: task.split,
    return: episode.return,
    success,
    stop,
    rewards: episode.steps.map(({ reward }) => reward),
  };
  for (const { messages } of spokenIn(episode, readably))
    for (const message of messages)
      yield { type: "message", message: traceMessage(message, episode.policy) };
}

function traceMessage(
  { role, content, reasoning, calls, answers, step }: SpokenMessage,
  model: string,
): unknown {
  return {
    role,
    content,
    reasoningContent: reasoning,
    toolCalls: calls?.map(({ id, tool, arguments: text }) => ({
      id,
      function: { name: tool, arguments: text },
    })),
    toolCallId: role === "tool" ? answers : undefined,
    model: step === undefined ? undefined : model,
  };
}

function datasetCard({ name, environment, manifest, player }: Source, count: number): string {
  return `---
configs:
  - config_name: default
    data_files:
      - split: train
        path: "sessions/**/*.jsonl"
tags:
  - agent-traces
  - pawl
---

# ${name}

${count} episodes of ${player} in ${environment}, recorded by pawl ${manifest.versions.pawl ?? ""}
(${manifest.kind}, seed ${manifest.seed}, ${manifest.createdAt}).
`;
}

/** A format: what it writes, and how. */
interface Format {
  /** How the file's name must end; a folder if absent. */
  readonly ending?: string;
  readonly summary: string;
  write(target: string, source: Source): Promise<void>;
}

/** Applies a function to every episode as it is read. */
function* mapped<T>(source: Source, one: (episode: Episode) => T): Generator<T> {
  for (const episode of source.episodes()) yield one(episode);
}

function* flatMapped<T>(source: Source, some: (episode: Episode) => Iterable<T>): Generator<T> {
  for (const episode of source.episodes()) yield* some(episode);
}

const FORMATS = {
  jsonl: {
    ending: ".jsonl",
    summary: "one episode a line: messages, steps, rewards, token ids",
    write: (file, source) =>
      writePieces(file, lines(mapped(source, (episode) => episodeJson(episode, source)))),
  },
  parquet: {
    ending: ".parquet",
    summary: "the same as columns, for pandas, DuckDB and data sets on the hub",
    write: (file, source) =>
      writeParquet(
        file,
        mapped(source, (episode) => episodeJson(episode, source)),
        { "pawl.version": packageVersion(), "pawl.run": source.name },
      ),
  },
  inspect: {
    ending: ".eval",
    summary: "a log of Inspect, for inspect view",
    write: writeInspectLog,
  },
  "hub-traces": {
    summary: "sessions for the trace viewer of the Hugging Face hub, one file each",
    write: writeHubTraces,
  },
  verifiers: {
    ending: ".jsonl",
    summary: "traces.jsonl of verifiers, with tokens and log-probabilities",
    write: (file, source) =>
      writePieces(file, lines(mapped(source, (episode) => verifiersEpisode(episode, source)))),
  },
  sharegpt: {
    ending: ".jsonl",
    summary: "conversations for supervised fine-tuning, as LLaMA-Factory reads them",
    write: (file, source) =>
      writePieces(file, lines(flatMapped(source, (episode) => sharegptRecords(episode, source)))),
  },
} as const satisfies Record<string, Format>;

/** The name of a format. */
export type FormatName = keyof typeof FORMATS;

/** The formats, for help. */
export const formatNames = Object.keys(FORMATS) as [FormatName, ...FormatName[]];

/** A line for each format. */
export const formatLines: readonly string[] = Object.entries(FORMATS).map(
  ([name, { summary }]) => `${name}: ${summary}`,
);

/** Refuses a place that cannot be written to, before anything is read. */
function checkTarget(format: FormatName, target: string): void {
  const { ending }: Format = FORMATS[format];
  if (ending !== undefined && extname(target) !== ending)
    throw new ConfigError(`--out: expected a file that ends in ${ending}, got ${target}`);
  if (!existsSync(target)) return;
  if (ending !== undefined)
    throw new ConfigError(`--out: ${target} exists already; name another file`);
  if (readdirSync(target).length > 0)
    throw new ConfigError(`--out: ${target} is not empty; name a new folder`);
}

/**
 * Writes the episodes; the file or folder appears when it is complete. Returns how many episodes
 * were written.
 */
export async function exportEpisodes(
  source: Source,
  format: FormatName,
  target: string,
): Promise<number> {
  checkTarget(format, target);
  const { ending, write }: Format = FORMATS[format];
  let count = 0;
  const counted: Source = {
    ...source,
    *episodes() {
      for (const episode of source.episodes()) {
        count++;
        yield episode;
      }
    },
  };
  try {
    await mkdir(dirname(target), { recursive: true });
    if (ending !== undefined) await write(target, counted);
    else {
      if (existsSync(target)) rmdirSync(target);
      await writeFolderAtomically(target, (folder) => write(folder, counted));
    }
  } catch (error) {
    throw writeError(error, target);
  }
  return count;
}
