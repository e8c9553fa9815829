/** What may be different when a run goes on: how long it is, how it is watched, and where it is computed. */
import { ConfigError } from "../config/config-error.js";
import { flagOf } from "../config/settings.js";
import { differences, type SettingsTree } from "../config/settings-tree.js";
import type { SettingChanges } from "../runs/manifest.js";
import { RunError } from "../runs/run-error.js";
import { learningRate, type OptimizerOptions } from "./schedule.js";

/** Settings that change nothing of what was learnt so far. */
const FREE: readonly RegExp[] = [
  /^evaluation\./,
  /^checkpointEvery$/,
  /^mismatchLimit$/,
  /^engine\.(address|threads|model|copy|sampler|samplerModel|samplerFolder)$/,
];

/** A run that goes on. */
export interface Resumption {
  readonly folder: string;
  /** The setting that says how long it is: `updates`, `epochs`. */
  readonly length: string;
  /** How people gave a setting; default: its flag. */
  readonly placeOf?: ((path: readonly string[]) => string) | undefined;
}

/** The settings that are to change, by their path; those that cannot are refused by name. */
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
            `${placeOf(path)} cannot change on a resumed run: ${folder} was started with ${told(from)}, not ${told(to)}. Leave it out, or start a new run.`,
        )
        .join("\n"),
    );
  return Object.fromEntries(changes.map(({ path, from, to }) => [path.join("."), { from, to }]));
}

const told = (value: unknown): string => (value === undefined ? "none" : JSON.stringify(value));

/** Refuses to make a run shorter than it is. */
export function refuseShorter(
  { folder, length, placeOf = flagOf }: Resumption,
  asked: number,
  done: number,
): void {
  if (asked < done)
    throw new RunError(
      `${placeOf([length])}: ${folder} has ${done} ${length} behind it, and ${asked} are asked for: ask for ${done} or more`,
    );
}

/** A run's length, in updates or epochs and in optimiser steps. */
interface RunLength {
  readonly length: number;
  readonly steps: number;
}

/** What a new length does to a learning rate that falls towards the end; undefined where it does nothing. */
export function scheduleNotice(
  { optimizer, unit, step }: { optimizer: OptimizerOptions; unit: string; step: number },
  before: RunLength,
  now: RunLength,
): string | undefined {
  if (optimizer.schedule === "constant" || before.length === now.length) return undefined;
  const rate = ({ steps }: RunLength): string =>
    Number(learningRate(optimizer, step, steps).toPrecision(3)).toString();
  return `the learning rate now falls over ${now.length} ${unit} instead of ${before.length} (optimizer.schedule ${optimizer.schedule}): it goes on at ${rate(now)}, where it would have been ${rate(before)}`;
}
