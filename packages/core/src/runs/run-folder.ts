/**
 * A run folder: everything needed to explain and repeat a run.
 *
 *   manifest.json      what created it, resolved configuration, versions, seeds, how it ended
 *   episodes.jsonl.gz  every finished episode, append-only
 *   metrics.jsonl      named numbers over time; metrics.crc32 has the checksum of each line
 *   alarms.jsonl       what went wrong, in words; only if something did
 *   tensorboard/       the same numbers for TensorBoard
 *   checkpoints/       weights, optimiser state and training state; complete or absent
 *   lock, lock.1 …     the process that is writing (run-lock.ts)
 */
import { existsSync, mkdirSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { messageOf } from "../errors.js";
import { explainIo } from "../files/io-error.js";
import { loadedPlugins } from "../loaded-plugins.js";
import { EscapedError } from "../processes/escaped-errors.js";
import type { Episode } from "../rollout/episode.js";
import { requireOwnFiles } from "../trust/consent.js";
import { secretSettings } from "../trust/secret-settings.js";
import { withoutSecrets } from "../trust/secrets.js";
import { packageVersion } from "../version.js";
import { type EpisodeRecord, packEpisode, unpackEpisode } from "./episode-record.js";
import {
  editedManifest,
  groupsPerUpdate,
  type Manifest,
  RUN_SCHEMA,
  type RunStatus,
  readManifest,
  type SettingChanges,
  writeManifest,
} from "./manifest.js";
import { cutMetrics, type MetricsLine, openMetricsWriter, readMetrics } from "./metrics-file.js";
import { checkNewFolder, clearForStart, removeLeftovers } from "./new-folder.js";
import { openRecordWriter, type RecordWriter, readRecords } from "./record-file.js";
import { RunError } from "./run-error.js";
import { findLock, type RunLock, takeLock } from "./run-lock.js";
import { episodesPath, eventsPath, metricsPath } from "./small-file.js";
import { type EventWriter, openEventWriter, stepOf } from "./tensorboard.js";

/** What a new run needs. */
export interface NewRun {
  readonly folder: string;
  /** The command that creates it. */
  readonly kind: string;
  readonly seed: number;
  readonly config: Readonly<Record<string, unknown>>;
  /** What its settings were based on, if that is known. */
  readonly recipe?: string | undefined;
  /** Where its start model came from, if it was fetched. */
  readonly start?: Manifest["start"] | undefined;
}

/** A run that is being written. */
export interface Run {
  readonly folder: string;
  /** Throws if another process has taken the folder by force: call it before writing to it. */
  requireOwn(): void;
  recordEpisodes(episodes: readonly Episode[]): void;
  recordMetrics(line: MetricsLine): void;
  /** Writes how the run ended and releases the folder. */
  finish(
    status: Exclude<RunStatus, "running">,
    details?: { summary?: MetricsLine; error?: string; stoppedBy?: Manifest["stoppedBy"] },
  ): void;
}

/** A run on disk. */
export interface RecordedRun {
  readonly folder: string;
  readonly manifest: Manifest;
  /** Whether a live process is writing to it now. */
  readonly active: boolean;
  episodes(): Generator<Episode>;
  metrics(): MetricsLine[];
}

const ignore = (): void => undefined;

/** The folder of a new run in `runs/`, named after the time and the command. */
export function defaultRunFolder(kind: string, subject: string, now = new Date()): string {
  const moment = now.toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
  const base = join("runs", `${moment}-${kind}-${subject}`);
  let folder = base;
  for (let n = 2; existsSync(folder); n++) folder = `${base}-${n}`;
  return folder;
}

/** Starts a run in a new or empty folder, or in that of a run that failed before it recorded anything. */
export function createRun(run: NewRun, onProblem: (message: string) => void): Run {
  const { folder } = run;
  const [secret] = secretSettings(run.config);
  if (secret !== undefined)
    throw new RunError(
      `${secret.path.join(".")}: ${secret.fix}. Settings are recorded with the run.`,
    );
  let lock: RunLock;
  try {
    mkdirSync(folder, { recursive: true });
    checkNewFolder(folder);
    lock = takeLock(folder);
    clearForStart(folder, lock);
  } catch (error) {
    if (error instanceof RunError) throw error;
    throw new RunError(`could not create the run folder ${explainIo(error, folder)}`, {
      cause: error,
    });
  }
  const manifest: Manifest = {
    schema: RUN_SCHEMA,
    kind: run.kind,
    status: "running",
    createdAt: new Date().toISOString(),
    seed: run.seed,
    config: run.config,
    ...(run.recipe !== undefined && { recipe: run.recipe }),
    ...(run.start !== undefined && { start: run.start }),
    ...pluginsNow(),
    cores: availableParallelism(),
    versions: {
      pawl: packageVersion(),
      node: process.version,
      platform: `${process.platform}-${process.arch}`,
    },
  };
  try {
    const episodes = openRecordWriter(episodesPath(folder), ({ message }) => onProblem(message));
    return writeRun(
      folder,
      manifest,
      { episodes, events: openEventWriter(eventsPath(folder)) },
      lock,
    );
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** What to keep of a resumed run, and what changes. */
export interface ResumedRun {
  /** Which records to keep. */
  readonly keep: {
    episode(episode: Pick<Episode, "group">): boolean;
    metrics(line: MetricsLine): boolean;
  };
  /** The number of updates to keep. */
  readonly updates: number;
  /** The settings from now on (default: unchanged). */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly changed?: SettingChanges;
  /** Take the folder even from a process that cannot be seen from here. */
  readonly forceUnlock?: boolean | undefined;
}

/** Resumes a run that was interrupted or killed, or that is to be longer. */
export function resumeRun(
  folder: string,
  resumed: ResumedRun,
  onProblem: (message: string) => void,
): Run {
  const { keep, updates, changed = {} } = resumed;
  // First reject a folder that is not a run; its manifest counts only once nobody else writes it.
  readManifest(folder);
  requireOwnFiles(folder);
  const lock = takeLock(folder, { force: resumed.forceUnlock });
  try {
    removeLeftovers(folder);
    const {
      finishedAt,
      error: __,
      summary: ___,
      stoppedBy: ____,
      ...manifest
    } = readManifest(folder);
    const edited = editedManifest(folder);
    if (edited !== undefined) throw new RunError(edited);
    const stoppedAt = finishedAt ?? lastWritten(metricsPath(folder));
    const episodes = openRecordWriter(
      episodesPath(folder),
      ({ message }) => onProblem(message),
      (record) => keep.episode(record as EpisodeRecord),
      // The process that lost the folder may still have the file open.
      lock.isForced,
    );
    cutMetrics(metricsPath(folder), keep.metrics, onProblem);
    const last = readMetrics(metricsPath(folder), onProblem).at(-1);
    const events = openEventWriter(eventsPath(folder), last === undefined ? 0 : stepOf(last) + 1);
    // What an earlier resume changed holds from here at the latest: later updates are repeated.
    const earlier = (manifest.resumes ?? []).map((one) => ({
      ...one,
      update: Math.min(one.update, updates),
    }));
    const now = {
      at: new Date().toISOString(),
      ...(stoppedAt !== undefined && { stoppedAt }),
      update: updates,
      pawl: packageVersion(),
      changed,
      cores: availableParallelism(),
      ...pluginsNow(),
    };
    const next: Manifest = {
      ...manifest,
      config: resumed.config ?? manifest.config,
      ...pluginsNow(),
      resumes: [...earlier, now],
      status: "running",
    };
    return writeRun(folder, next, { episodes, events }, lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

function lastWritten(path: string): string | undefined {
  return existsSync(path) ? statSync(path).mtime.toISOString() : undefined;
}

/** The plugins of this process, if it has any. */
function pluginsNow(): Pick<Manifest, "plugins"> {
  const plugins = loadedPlugins();
  return plugins.length === 0
    ? {}
    : { plugins: plugins.map(({ path, sha256 }) => ({ path, sha256 })) };
}

function writeRun(
  folder: string,
  manifest: Manifest,
  { episodes, events }: { readonly episodes: RecordWriter; readonly events: EventWriter },
  lock: RunLock,
): Run {
  lock.require();
  writeManifest(folder, manifest);
  const metrics = openMetricsWriter(metricsPath(folder));
  return {
    folder,
    requireOwn: () => lock.require(),
    recordEpisodes(batch) {
      lock.require();
      episodes.append(batch.map(packEpisode));
    },
    recordMetrics(line) {
      lock.require();
      metrics.append(line);
      events.append(line);
    },
    finish(status, details = {}) {
      const finishedAt = new Date().toISOString();
      // On a full disk some of this fails; the rest is done anyway, and the folder is released.
      doAll([
        () => lock.require(),
        () => episodes.close(),
        () => metrics.close(),
        () => events.close(),
        () => {
          lock.require();
          writeManifest(folder, { ...manifest, ...details, status, finishedAt });
        },
        () => lock.release(),
      ]);
    },
  };
}

/** Runs every action, then throws the first error. */
function doAll(steps: readonly (() => void)[]): void {
  const errors: unknown[] = [];
  for (const step of steps) {
    try {
      step();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

/**
 * Writes that a run was interrupted or failed. People must see the error that ended it: if its end
 * cannot be written either, that is reported separately.
 */
export function finishFailed(
  run: Run,
  error: unknown,
  options: {
    readonly signal?: AbortSignal | undefined;
    readonly summary?: MetricsLine;
    readonly onProblem?: ((message: string) => void) | undefined;
  },
): void {
  const { aborted = false, reason } = options.signal ?? {};
  const escaped = reason instanceof EscapedError ? reason : undefined;
  const cause = escaped ?? error;
  const isStopped = aborted && escaped === undefined;
  const message = withoutSecrets(messageOf(cause));
  try {
    run.finish(isStopped ? "interrupted" : "failed", {
      ...(options.summary !== undefined && { summary: options.summary }),
      ...(!isStopped && { error: message }),
    });
  } catch (second) {
    // A folder that was lost says so once.
    if ((second as Error).message === message) return;
    options.onProblem?.(
      `${run.folder}: how the run ended could not be written: ${(second as Error).message}`,
    );
  }
}

/** Opens a recorded run for reading. */
export function openRun(folder: string, onProblem: (message: string) => void): RecordedRun {
  const manifest = readManifest(folder);
  const edited = editedManifest(folder);
  if (edited !== undefined) onProblem(edited);
  return {
    folder,
    manifest,
    active: findLock(folder).owner?.seemsActive === true,
    *episodes() {
      const path = episodesPath(folder);
      // It is there from the beginning, before the manifest.
      if (!existsSync(path)) return onProblem(`${path} is missing`);
      let isEmpty = true;
      for (const record of readRecords(path, (problem) => onProblem(problem.message))) {
        isEmpty = false;
        yield episodeOf(record, path);
      }
      if (isEmpty && groupsPerUpdate(manifest) !== undefined) {
        const { length } = readMetrics(metricsPath(folder), ignore).filter(
          ({ update = -1 }) => update >= 0,
        );
        if (length > 0) onProblem(`${path} holds no episodes, though there were ${length} updates`);
      }
    },
    metrics: () => readMetrics(metricsPath(folder), onProblem),
  };
}

function episodeOf(record: unknown, path: string): Episode {
  try {
    return unpackEpisode(record as EpisodeRecord);
  } catch (error) {
    throw new RunError(`${path}: a record is not an episode: another program wrote it`, {
      cause: error,
    });
  }
}
