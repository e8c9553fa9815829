/** What an alarm is: a sign in the metrics that training has gone wrong. */
import type { MetricsLine } from "../runs/metrics-file.js";
import type { AlarmOptions } from "./options.js";

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
