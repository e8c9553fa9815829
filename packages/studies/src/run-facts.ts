/** What a training run's metrics say about its course: success, entropy, gradients, time, memory. */
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";

/** A number at the beginning and at the end of training. */
export interface BeginAndEnd {
  readonly begin: number;
  readonly end: number;
}

/** What one run's metrics tell. */
export interface RunFacts {
  /** Success at the evaluations during training, by split and number of updates. */
  readonly course: Readonly<Record<string, Readonly<Record<number, number>>>>;
  /** Mean success of the training episodes of every tenth of the updates, by its last update. */
  readonly training: Readonly<Record<number, number>>;
  /** Metrics of learning, by name (`LEARNING`); those that were not measured are absent. */
  readonly learning: Readonly<Record<string, BeginAndEnd>>;
  /** Median seconds of an update, by phase. */
  readonly secondsPerUpdate: Readonly<Record<string, number>>;
  /** Largest memory, by what was measured; `mib` is this process's. */
  readonly memory: Readonly<Record<string, number>>;
}

/** The metrics of learning that are summed up, and their headings. */
export const LEARNING: Readonly<Record<string, string>> = {
  "policy.actionEntropy": "action entropy",
  "gradient.policy": "‖g_policy‖",
  "gradient.world": "‖g_world‖",
  "gradient.cosine": "cosine",
  "world.p": "p of observations",
  "policy.kl": "KL to the start",
};

/** Sums up the metrics of a run in one pass over its lines. */
export function runFacts(lines: readonly MetricsLine[]): RunFacts {
  const course: Record<string, Record<number, number>> = {};
  const values = new Map<string, number[]>();
  for (const { update = -1, ...line } of lines) {
    for (const [name, measured] of Object.entries(line)) {
      // Recorded runs of removed arms learnt it scaled, and measured it before.
      const value = name === "gradient.world" ? measured * (line["world.scale"] ?? 1) : measured;
      const split = /^eval\.(.+)\.success$/.exec(name)?.[1];
      if (split !== undefined) {
        course[split] = { ...course[split], [update + 1]: value };
      } else {
        const all = values.get(name) ?? [];
        values.set(name, all);
        all.push(value);
      }
    }
  }
  const named = (prefix: string, of: (all: readonly number[]) => number) =>
    Object.fromEntries(
      [...values].flatMap(([name, all]) =>
        name.startsWith(prefix) ? [[name.slice(prefix.length), of(all)]] : [],
      ),
    );
  return {
    course,
    training: byTenth(values.get("train.success") ?? []),
    learning: Object.fromEntries(
      Object.keys(LEARNING).flatMap((name) => {
        const all = values.get(name);
        return all === undefined ? [] : [[name, beginAndEnd(all)]];
      }),
    ),
    secondsPerUpdate: named("seconds.", median),
    memory: named("memory.", (all) => Math.max(...all)),
  };
}

/** A tenth of the measurements, at least one. */
const tenthOf = (all: readonly number[]): number => Math.max(1, Math.floor(all.length / 10));

/** Means of the first and of the last tenth of the measurements. */
function beginAndEnd(all: readonly number[]): BeginAndEnd {
  const few = tenthOf(all);
  return { begin: mean(all.slice(0, few)), end: mean(all.slice(-few)) };
}

/** Means of one tenth after another, by the number of measurements up to its end. */
function byTenth(all: readonly number[]): Record<number, number> {
  const few = tenthOf(all);
  const means: Record<number, number> = {};
  for (let from = 0; from < all.length; from += few) {
    const some = all.slice(from, from + few);
    means[from + some.length] = mean(some);
  }
  return means;
}

const mean = (some: readonly number[]): number =>
  some.reduce((sum, one) => sum + one, 0) / some.length;

function median(all: readonly number[]): number {
  const order = [...all].sort((a, b) => a - b);
  const middle = Math.floor(order.length / 2);
  return order.length % 2 === 1 ? order[middle]! : (order[middle - 1]! + order[middle]!) / 2;
}

/** Updates until an evaluation reaches this success; undefined if none does. */
export function updatesTo(
  course: Readonly<Record<number, number>> | undefined,
  goal: number,
): number | undefined {
  const moments = Object.keys(course ?? {})
    .map(Number)
    .sort((a, b) => a - b);
  return moments.find((moment) => course![moment]! >= goal);
}
