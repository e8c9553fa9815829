/** What an alarm is: a sign in the metrics that training has gone wrong. */

import { z } from "zod";
import type { MetricsLine } from "../runs/metrics-file.js";

// The settings of alarms.

const factor = z
  .number()
  .refine((value) => value === 0 || value > 1, { message: "expected 0 (never) or more than 1" });
const fraction = z.number().min(0).lt(1);

/** When each alarm is raised; 0 turns one off. */
export const alarmOptions = z
  .strictObject({
    window: z
      .int()
      .min(1)
      .default(5)
      .describe("updates that an alarm looks at together, so that one odd update raises none"),
    entropy: fraction
      .default(0.05)
      .describe(
        "alarm if action entropy falls below this fraction of its highest while under 90 % succeed (0: never)",
      ),
    kl: factor
      .default(10)
      .describe("alarm if policy.kl is this many times what it was before (0: never)"),
    mismatch: factor
      .default(10)
      .describe("alarm if mismatch.mean grows to this many times its lowest (0: never)"),
    groups: z
      .int()
      .min(0)
      .default(3)
      .describe(
        "alarm after this many updates in a row without any group to learn from (0: never)",
      ),
    reward: fraction
      .default(0.1)
      .describe("alarm if rewards fall below this fraction of their best (0: never)"),
    stall: z
      .int()
      .min(0)
      .default(0)
      .describe("alarm after this many updates without better rewards (0: never)"),
  })
  .prefault({});

/** The settings of alarms. */
export type AlarmOptions = z.output<typeof alarmOptions>;

/** A kind of alarm. */
export interface Alarm {
  /** Its name in `--stop-on`, in `alarm.NAME` of the metrics, and in the settings. */
  readonly name: string;
  /** What it watches for, for help. */
  readonly summary: string;
  /** The metrics that it looks at in lines before the last; of those, no others are kept. */
  readonly reads: readonly string[];
  /** What is wrong at the last of these lines, in words; undefined if nothing is. */
  check(lines: readonly MetricsLine[], options: AlarmOptions): string | undefined;
}

/** The values of a metric, oldest first; lines without it are left out. */
export function valuesOf(lines: readonly MetricsLine[], ...names: readonly string[]): number[] {
  return lines.flatMap((line) => {
    const name = names.find((one) => line[one] !== undefined);
    return name === undefined ? [] : [line[name]!];
  });
}

/** What is maximised: the return of episodes, or the reward of predictions. */
export const REWARDS = ["train.return", "rwml.reward"] as const;

/** Means over every stretch of this many values, oldest first. */
export function movingMeans(values: readonly number[], size: number): number[] {
  const means: number[] = [];
  for (let end = size; end <= values.length; end++) means.push(mean(values.slice(end - size, end)));
  return means;
}

/** The mean of some numbers. */
export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** The middle one of some numbers. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2;
}

/** A number in an alarm's text. */
export const shown = (value: number): string => Number(value.toPrecision(3)).toString();
