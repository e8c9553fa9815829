/** All alarms, and which of them the metrics raise. */
import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import type { Alarm } from "./alarm.js";
import { entropyAlarm } from "./entropy.js";
import { groupsAlarm } from "./groups.js";
import { klAlarm } from "./kl.js";
import { mismatchAlarm } from "./mismatch.js";
import { nanAlarm } from "./nan.js";
import type { AlarmOptions } from "./options.js";
import { rewardAlarm } from "./reward.js";
import { stallAlarm } from "./stall.js";

/** To add an alarm, write a file beside these and add a line here and a setting to `options.ts`. */
const alarms: readonly Alarm[] = [
  nanAlarm,
  entropyAlarm,
  klAlarm,
  mismatchAlarm,
  groupsAlarm,
  rewardAlarm,
  stallAlarm,
];

/** The names of the alarms. */
export const alarmNames: readonly string[] = alarms.map(({ name }) => name);

/** The alarms that end a run. */
export const stopOnOption = z
  .array(z.enum(alarmNames))
  .default([])
  .describe(`end the run when one of these alarms is raised: ${alarmNames.join(", ")}`);

/** An alarm that is raised, with its text. */
export interface RaisedAlarm {
  readonly update: number;
  readonly alarm: string;
  readonly text: string;
}

const metricOf = (name: string): string => `alarm.${name}`;

const read = new Set([
  "update",
  ...alarms.flatMap(({ name, reads }) => [metricOf(name), ...reads]),
]);

/** What the alarms look at in a line once others come after it; a long run keeps this of each. */
export function rememberedOf(line: MetricsLine): MetricsLine {
  return Object.fromEntries(Object.entries(line).filter(([name]) => read.has(name)));
}

/** What the alarms say about a new line. */
export interface Watched {
  /** The line with `alarm.NAME: 1` for each alarm whose condition holds. */
  readonly line: MetricsLine;
  /** Those whose condition did not hold before: a lasting fault is reported once. */
  readonly raised: readonly RaisedAlarm[];
}

/** Checks a new line against what is remembered of those before it. */
export function watchLine(
  before: readonly MetricsLine[],
  line: MetricsLine,
  options: AlarmOptions,
): Watched {
  const lines = [...before, line];
  const { update = -1 } = line;
  const holding = alarms.flatMap(({ name, check }): readonly RaisedAlarm[] => {
    const text = check(lines, options);
    return text === undefined ? [] : [{ update, alarm: name, text }];
  });
  return {
    line: {
      ...line,
      ...Object.fromEntries(holding.map(({ alarm }) => [metricOf(alarm), 1])),
    },
    raised: holding.filter(({ alarm }) => before.at(-1)?.[metricOf(alarm)] !== 1),
  };
}

/** Refuses to wait for alarms that cannot be raised; `without` says why the metrics cannot. */
export function checkStopOn(
  {
    stopOn,
    alarms: options,
  }: { readonly stopOn: readonly string[]; readonly alarms: AlarmOptions },
  without: Readonly<Record<string, string | undefined>>,
): void {
  for (const name of stopOn) {
    const off = (options as Readonly<Record<string, number>>)[name] === 0;
    const reason = off ? `alarms.${name} is 0, which turns it off` : without[name];
    if (reason !== undefined)
      throw new ConfigError(`--stop-on ${name}: this alarm cannot be raised: ${reason}`);
  }
}
