/** Commands that record a long run to a folder and can resume an interrupted one. */

import { ConfigError } from "@pawl/core/config/config-error.js";
import type { SettingsTree } from "@pawl/core/config/settings-tree.js";
import { EngineError } from "@pawl/core/engine/engine.js";
import { EscapedError } from "@pawl/core/processes/escaped-errors.js";
import { hasManifest } from "@pawl/core/runs/manifest.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { checkNewFolder } from "@pawl/core/runs/new-folder.js";
import { RunError } from "@pawl/core/runs/run-error.js";
import type { EngineOptions } from "@pawl/training/engines.js";
import { checkCopy, copyRun, forceUnlockSetting } from "@pawl/training/resume.js";
import { z } from "zod";
import type { Base, Given } from "./command.js";
import { type Io, print, warn } from "./io.js";

/** Settings of every command that can resume a run; `more` says how to make one longer. */
export const resumeSettings = (more: string) => ({
  resume: z
    .string()
    .optional()
    .describe(`resume this run with its settings; add ${more} to make it longer`),
  forceUnlock: forceUnlockSetting,
});

/** Which run to resume, and how. */
interface Resumed {
  readonly out?: string | undefined;
  readonly resume?: string | undefined;
  readonly forceUnlock: boolean;
}

/** The folder of a run: the one to resume or a copy of it, the requested one, or a new one. */
export function runFolderOf(
  { out, resume, forceUnlock }: Resumed,
  { fresh, check }: { fresh(): string; check(run: string): void },
): string {
  if (resume === undefined) {
    refuseUnlock(forceUnlock);
    return out ?? fresh();
  }
  if (out === undefined) return resume;
  // Reject what cannot be resumed before making a copy.
  check(resume);
  copyRun(resume, out, forceUnlock);
  return out;
}

/** Refuses what `runFolderOf` and the start or resume of a run there would refuse. */
export function checkRunFolder(
  { out, resume, forceUnlock }: Resumed,
  checkResume: (run: string) => void,
): void {
  if (resume === undefined) {
    refuseUnlock(forceUnlock);
    if (out !== undefined) checkNewFolder(out);
    return;
  }
  checkResume(resume);
  if (out !== undefined) checkCopy(resume, out, forceUnlock);
}

function refuseUnlock(forceUnlock: boolean): void {
  if (forceUnlock)
    throw new ConfigError("--force-unlock: there is nothing to unlock without --resume");
}

/** The settings of a resumed run, with lower priority than the given ones. */
export function settingsOfRun(
  run: string,
  configOf: (run: string) => SettingsTree & { readonly engine: EngineOptions },
  { peek }: Given,
): Base {
  const config = asUsage(() => configOf(run));
  for (const [key, value] of Object.entries(config)) {
    // Another variant has other settings, so the run's would be rejected in its place.
    const name = (value as { readonly name?: unknown } | undefined)?.name;
    const asked = key === "engine" || name === undefined ? undefined : peek(`${key}.name`);
    if (asked !== undefined && asked !== name)
      throw new ConfigError(
        `--${key} cannot change on a resumed run: ${run} was started with ${JSON.stringify(name)}, not ${JSON.stringify(asked)}. Leave it out, or start a new run.`,
      );
  }
  const { model: _, ...engine } = config.engine;
  const here = peek("engine.address") === "embedded";
  return {
    path: `the run ${run}`,
    file: "over",
    recorded: true,
    // The embedded engine has no server with several models, or copies to fetch.
    content: here ? { ...config, engine: { ...engine, copy: false } } : config,
  };
}

/** A run that cannot be resumed at all was named by mistake. */
function asUsage<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RunError)) throw error;
    throw new ConfigError(`--resume: ${error.message}`, { cause: error });
  }
}

/** Does the work with a live view; says how to resume if it is interrupted. */
export async function recordRun(
  { command, folder, json, io, signal }: RecordedCommand,
  progress: { doing?(): string; end(): void },
  work: (onProblem: (message: string) => void) => Promise<void>,
): Promise<void> {
  const stopping = (): void => {
    const now = progress.doing?.() ?? "";
    warn(
      io,
      `stopping as soon as what is being computed is done${now === "" ? "" : ` (${now})`}; Ctrl-C again ends at once`,
    );
  };
  signal.addEventListener("abort", stopping, { once: true });
  try {
    await work((message) => warn(io, message));
  } catch (error) {
    const goesOn = `pawl ${command} --resume ${folder} resumes it`;
    if (signal.reason instanceof EscapedError)
      warn(io, `the program failed; when it is mended, ${goesOn} from the last checkpoint`);
    else if (signal.aborted) warn(io, `interrupted; ${goesOn}`);
    else if (error instanceof EngineError && hasManifest(folder))
      warn(io, `the engine failed; when it works again, ${goesOn} from the last checkpoint`);
    throw error;
  } finally {
    signal.removeEventListener("abort", stopping);
    progress.end();
  }
  print(
    io,
    json ? JSON.stringify({ folder }) : `recorded to ${folder}; pawl report ${folder} draws it`,
  );
}

/** A progress whose metrics are also printed, each line as JSON. */
export function withJson<P extends { onMetrics(line: MetricsLine): void }>(io: Io, progress: P): P {
  return {
    ...progress,
    onMetrics(line: MetricsLine) {
      print(io, JSON.stringify(line));
      progress.onMetrics(line);
    },
  };
}

interface RecordedCommand {
  /** Its words after `pawl`. */
  readonly command: string;
  readonly folder: string;
  /** Print where it was recorded as JSON. */
  readonly json?: boolean;
  readonly io: Io;
  readonly signal: AbortSignal;
}
