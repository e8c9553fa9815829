/**
 * What may change when a run is resumed: its length, how it is watched, and where it is computed.
 */

import { cpSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, dirname, join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { flagOf } from "@pawl/core/config/settings.js";
import { differences, type SettingsTree } from "@pawl/core/config/settings-tree.js";
import { POINTER_FILE } from "@pawl/core/engine/engine.js";
import { explainIo } from "@pawl/core/files/io-error.js";
import { readManifest, type SettingChanges, writeManifest } from "@pawl/core/runs/manifest.js";
import { RunError } from "@pawl/core/runs/run-error.js";
import { requireFree } from "@pawl/core/runs/run-lock.js";
import { learningRate, type OptimizerOptions } from "@pawl/core/train/schedule.js";
import { withoutSecretSettings } from "@pawl/core/trust/secret-settings.js";
import { z } from "zod";

/** Takes run folders from processes that cannot be seen from here. */
export const forceUnlockSetting = z
  .boolean()
  .default(false)
  .describe("take over a run whose process on another machine or in another container has ended");

/** Settings that say nothing of what is learnt, and λ, whose course the manifest keeps. */
const FREE: readonly RegExp[] = [
  /^evaluation\./,
  /^checkpointEvery$/,
  /^keep$/,
  /^mismatchLimit$/,
  /^rollout\./,
  /^(alarms\.|track\.|stopOn$)/,
  /^engine\.(address|threads|model|copy|sampler|samplerModel|samplerFolder)$/,
  /^paw\.lambda$/,
];

/** A run to resume. */
export interface Resumption {
  readonly folder: string;
  /** The setting for its length: `updates`, `epochs`. */
  readonly length: string;
  /** Where a setting was given; default: its flag. */
  readonly placeOf?: ((path: readonly string[]) => string) | undefined;
}

/** The settings that change, by their path; those that cannot change are refused by name. */
export function resumeChanges(
  recorded: SettingsTree,
  given: SettingsTree,
  { folder, length, placeOf = flagOf }: Resumption,
): SettingChanges {
  const changes = differences(recorded, given);
  const isFree = (path: string): boolean =>
    path === length || FREE.some((pattern) => pattern.test(path));
  const refused = changes.filter(({ path }) => !isFree(path.join(".")));
  if (refused.length > 0)
    throw new ConfigError(
      refused
        .map(
          ({ path, from, to }) =>
            `${placeOf(path)} cannot change on a resumed run: ${folder} was started with ${show(path, from)}, not ${show(path, to)}. Leave it out, or start a new run.`,
        )
        .join("\n"),
    );
  return Object.fromEntries(changes.map(({ path, from, to }) => [path.join("."), { from, to }]));
}

const show = (path: readonly string[], value: unknown): string =>
  value === undefined ? "none" : JSON.stringify(withoutSecretSettings(value, path).settings);

/** Rejects a length shorter than what is already done. */
export function refuseShorter(
  { folder, length, placeOf = flagOf }: Resumption,
  asked: number,
  done: number,
): void {
  if (asked < done)
    throw new RunError(
      `${placeOf([length])}: ${folder} has ${done} ${length} already, but ${asked} were asked for: ask for ${done} or more`,
    );
}

/** A run's length, in updates or epochs and in optimiser steps. */
interface RunLength {
  readonly length: number;
  readonly steps: number;
}

/** What a new length does to a learning rate that decays towards the end; undefined if nothing. */
export function scheduleNotice(
  { optimizer, unit, step }: { optimizer: OptimizerOptions; unit: string; step: number },
  before: RunLength,
  now: RunLength,
): string | undefined {
  if (optimizer.schedule === "constant" || before.length === now.length) return undefined;
  const rate = ({ steps }: RunLength): string =>
    Number(learningRate(optimizer, step, steps).toPrecision(3)).toString();
  return `the learning rate now falls over ${now.length} ${unit} instead of ${before.length} (optimizer.schedule ${optimizer.schedule}): it resumes at ${rate(now)}, where it would have been ${rate(before)}`;
}

/** Says so if a run goes on with another number of cores, on which the rounding of sums depends. */
export function coresNotice(
  folder: string,
  config: SettingsTree,
  cores = availableParallelism(),
): string | undefined {
  const { cores: first, resumes = [] } = readManifest(folder);
  const before = resumes.at(-1)?.cores ?? first;
  const { address, threads } = (config.engine ?? {}) as { address?: string; threads?: number };
  if (before === undefined || before === cores || threads !== undefined) return undefined;
  if (address !== undefined && address !== "embedded") return undefined;
  return `${folder} was computed on ${before} cores until now, and goes on with ${cores}: sums are split differently, so the last digits of its numbers differ. --engine.threads ${before} keeps them.`;
}

/** Copies a run that no process is writing to into a new or empty folder. */
export function copyRun(from: string, to: string, force = false): void {
  checkCopy(from, to, force);
  try {
    mkdirSync(dirname(to), { recursive: true });
    cpSync(from, to, { recursive: true, filter: (path) => !/^lock(\.|$)/.test(basename(path)) });
  } catch (error) {
    throw new RunError(`could not copy ${from} to ${explainIo(error, to)}`, { cause: error });
  }
  writeManifest(to, { ...readManifest(from), copiedFrom: from });
}

/** Refuses a copy that cannot be made or resumed. */
export function checkCopy(from: string, to: string, force: boolean): void {
  readManifest(from);
  requireFree(from, { force });
  if (existsSync(to) && readdirSync(to).length > 0)
    throw new RunError(`${to} is not empty: a copy of ${from} needs a folder of its own`);
  const pointer = pointers(from)[0];
  if (pointer !== undefined)
    throw new RunError(
      `${from} cannot be copied: ${pointer} points to an engine server, which keeps weights for one run only. Resume without --out.`,
    );
}

function pointers(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => basename(path) === POINTER_FILE)
    .map((path) => join(folder, path));
}
