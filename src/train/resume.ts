/**
 * What may change when a run is resumed: its length, how it is watched, and where it is computed.
 */

import { availableParallelism } from "node:os";
import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { flagOf } from "../config/settings.js";
import { differences, type SettingsTree } from "../config/settings-tree.js";
import { readManifest, type SettingChanges } from "../runs/manifest.js";
import { RunError } from "../runs/run-error.js";
import { withoutSecretSettings } from "../secret-settings.js";
import { learningRate, type OptimizerOptions } from "./schedule.js";

/** Takes run folders from processes that cannot be seen from here. */
export const forceUnlockSetting = z
  .boolean()
  .default(false)
  .describe("take over a run whose process on another machine or in another container has ended");

/** Settings that do not affect what was learnt so far. */
const FREE: readonly RegExp[] = [
  /^evaluation\./,
  /^checkpointEvery$/,
  /^keep$/,
  /^mismatchLimit$/,
  /^rollout\./,
  /^(alarms\.|track\.|stopOn$)/,
  /^engine\.(address|threads|model|copy|sampler|samplerModel|samplerFolder)$/,
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
