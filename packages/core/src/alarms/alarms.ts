/** All alarms, and which of them the metrics raise. */
import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import {
  type Alarm,
  type AlarmOptions,
  mean,
  median,
  movingMeans,
  REWARDS,
  shown,
  valuesOf,
} from "./alarm.js";

/** Metrics that were not finite are recorded under this prefix: JSON has no NaN. */
const NOT_FINITE = "notFinite.";

/** Raised when learning produced a number that is not finite. */
export const nanAlarm: Alarm = {
  name: "nan",
  summary: "a loss, gradient or metric is NaN or infinite",
  reads: [],
  check(lines) {
    const names = Object.keys(lines.at(-1) ?? {})
      .filter((name) => name.startsWith(NOT_FINITE))
      .map((name) => name.slice(NOT_FINITE.length));
    return names.length === 0 ? undefined : `not finite: ${names.join(", ")}`;
  },
};

/**
 * Whether an engine stopped because a number was not finite. Engines refuse such a loss or gradient
 * before it reaches the weights; those on servers say so in words only.
 */
export function saysNotFinite(message: string): boolean {
  return /\bis not finite\b|\bis (nan|-?inf(inity)?)\b|expected a finite number/i.test(message);
}

/** Marks numbers that are not finite, which a line of metrics cannot hold. */
export function markNotFinite(numbers: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(numbers)
      .filter(([, value]) => !Number.isFinite(value))
      .map(([name]) => [`${NOT_FINITE}${name}`, 1]),
  );
}

/** Raised when rewards have not been better for many updates. */
const stallAlarm: Alarm = {
  name: "stall",
  summary: "rewards stopped rising",
  reads: REWARDS,
  check(lines, { stall: updates, window }) {
    const means = movingMeans(valuesOf(lines, ...REWARDS), window);
    if (updates === 0 || means.length <= updates) return undefined;
    const best = Math.max(...means.slice(0, -updates));
    return Math.max(...means.slice(-updates)) <= best
      ? `rewards have not been better than ${shown(best)} for ${updates} updates`
      : undefined;
  },
};

/** Raised when rewards have all but vanished after there were some. */
const rewardAlarm: Alarm = {
  name: "reward",
  summary: "rewards stopped coming",
  reads: REWARDS,
  check(lines, { reward: share, window }) {
    const updates = lines.filter(({ update = -1 }) => update >= 0);
    if (share === 0 || updates.length < 2 * window) return undefined;
    // An update whose episodes all broke has no return: no reward came.
    const rewards = updates.map((line) => line[REWARDS[0]] ?? line[REWARDS[1]] ?? 0);
    // What came at every update of a window: rare successes come and go by chance.
    const before = rewards.slice(0, -window);
    const best = Math.max(
      ...before.slice(window - 1).map((_, i) => Math.min(...before.slice(i, i + window))),
    );
    const recent = rewards.slice(-window);
    return best > 0 && recent.every((value) => value < share * best)
      ? `rewards fell from ${shown(best)} to ${shown(mean(recent))} and stayed there for ${window} updates: the policy broke, or what gives rewards did`
      : undefined;
  },
};

/** In nats: what rounding explains may vary by any factor. */
const ROUNDING = 1e-4;

/** Raised when sampling and learning have drifted apart. */
const mismatchAlarm: Alarm = {
  name: "mismatch",
  summary: "sampling and learning compute ever more different log-probabilities",
  reads: ["mismatch.mean"],
  check(lines, { mismatch: factor }) {
    const now = lines.at(-1)?.["mismatch.mean"];
    const before = valuesOf(lines.slice(0, -1), "mismatch.mean");
    if (factor === 0 || now === undefined || before.length === 0) return undefined;
    const lowest = Math.min(...before);
    return now > ROUNDING && now > factor * lowest
      ? `mismatch.mean grew from ${shown(lowest)} to ${shown(now)} nats: the sampler may not receive new weights; see its log`
      : undefined;
  },
};

/** In nats per token: from a KL near 0, any growth is many times as much, and harmless. */
const HARMLESS = 0.05;

/** Raised when the KL to the reference is many times what it was before. */
const klAlarm: Alarm = {
  name: "kl",
  summary: "the KL to the reference jumped",
  reads: ["policy.kl"],
  check(lines, { kl: factor, window }) {
    const now = lines.at(-1)?.["policy.kl"];
    const before = valuesOf(lines.slice(0, -1), "policy.kl").slice(-window);
    if (factor === 0 || now === undefined || before.length < window) return undefined;
    const usual = median(before);
    return now > HARMLESS && now > factor * usual
      ? `policy.kl jumped from ${shown(usual)} to ${shown(now)} nats per token: the policy left its reference at once. Try a lower learning rate or gradClipNorm`
      : undefined;
  },
};

/** Raised when several updates in a row had no group with an advantage in it. */
const groupsAlarm: Alarm = {
  name: "groups",
  summary: "all groups have equal rewards, so that there is nothing to learn from",
  reads: ["train.equalGroups", "rwml.skipped", ...REWARDS],
  check(lines, { groups: updates }) {
    const recent = lines.slice(-updates);
    if (updates === 0 || recent.length < updates || !recent.every(isEqual)) return undefined;
    const reward = mean(valuesOf(recent, ...REWARDS));
    return `for ${updates} update${updates === 1 ? "" : "s"} every group had equal rewards (${shown(reward)} in the mean), so the policy learnt nothing. Choose tasks that succeed sometimes, larger groups, or a higher temperature`;
  },
};

const isEqual = (line: MetricsLine): boolean =>
  line["train.equalGroups"] === 1 || line["rwml.skipped"] === 1;

/** A policy that succeeds this often may be as certain as it likes. */
const SOLVED = 0.9;

/** Raised when actions have become nearly deterministic although many episodes fail. */
const entropyAlarm: Alarm = {
  name: "entropy",
  summary: "the entropy of actions collapsed although many episodes fail",
  reads: ["policy.actionEntropy", "policy.entropy", "train.success", "rwml.reward"],
  check(lines, { entropy: share, window }) {
    const recent = lines.slice(-window);
    const entropies = valuesOf(lines, "policy.actionEntropy", "policy.entropy");
    if (share === 0 || entropies.length < 2 * window) return undefined;
    const successes = valuesOf(recent, "train.success", "rwml.reward");
    if (successes.length === 0 || mean(successes) >= SOLVED) return undefined;
    const means = movingMeans(entropies, window);
    const now = means.at(-1)!;
    const highest = Math.max(...means.slice(0, -1));
    return now < share * highest
      ? `the entropy of actions fell from ${shown(highest)} to ${shown(now)} nats, and ${shown(100 * mean(successes))} % succeed: the policy explores no more. Try a higher objective.entropy or temperature, or a lower learning rate`
      : undefined;
  },
};

/** To add an alarm, write it above, add a line here and a setting to `alarm.ts`. */
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
