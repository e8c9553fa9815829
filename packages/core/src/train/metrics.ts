/** The metrics of an update that a run records, by name. */
import { markNotFinite } from "../alarms/alarms.js";
import type { PaceLoad } from "../rollout/rollouts.js";
import { createTally, rates, type Tally, trainedShare } from "../rollout/tally.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import type { FinishedUpdate } from "./rl-types.js";

/** Everything the paper plots, and timings. */
export function updateMetrics(done: FinishedUpdate): MetricsLine {
  const tally = createTally();
  for (const group of done.groups) for (const episode of group.episodes) tally.add(episode);
  const { success, meanReturn, meanSteps, invalid } = rates(tally.all);
  const { summary } = done.prepared;
  const seconds = Object.entries(done.seconds);
  return finite({
    update: done.index,
    "train.success": success,
    "train.return": meanReturn,
    "train.steps": meanSteps,
    "train.invalid": invalid,
    "train.responseTokens": summary.actionTokens / tally.all.steps,
    "train.broken": summary.brokenEpisodes,
    "train.trained": trainedShare(tally.tokens),
    "train.staleness": meanStaleness(done),
    "train.equalGroups": done.equalGroups,
    ...byType("train", tally),
    "curriculum.expected": done.expected ?? Number.NaN,
    ...replacedMetrics(done),
    ...hintMetrics(done),
    ...branchMetrics(done),
    "world.lambda": summary.meanLambda,
    "world.selectedShare": summary.selectedShare,
    "world.targets": summary.observationTokens,
    "distillation.kl": summary.teacherDistance ?? Number.NaN,
    "policy.actionEntropy": summary.meanActionEntropy,
    ...learntMetrics(done.learnt?.metrics),
    ...done.critic,
    ...done.gradients,
    "train.tokens": done.learnt?.tokens ?? 0,
    ...paceMetrics(done.pace),
    "pace.scored": done.scoredAhead ?? Number.NaN,
    "pace.overlapped": done.overlapped ?? Number.NaN,
    ...Object.fromEntries(seconds.map(([phase, time]) => [`seconds.${phase}`, time])),
    "memory.mib": process.resourceUsage().maxRSS / 1024,
  });
}

/** What was played and not learnt; nothing where nothing was. */
function replacedMetrics({ groups }: FinishedUpdate): MetricsLine {
  const replaced = groups.flatMap(({ episodes }) =>
    episodes.flatMap((episode) => episode.replaced ?? []),
  );
  if (replaced.length === 0) return {};
  return {
    "curriculum.replaced": replaced.length,
    "curriculum.tokens": replaced.reduce((sum, { tokens }) => sum + tokens, 0),
  };
}

/** The share of the groups that began with a hint, and how long those were; nothing without any. */
function hintMetrics({ groups }: FinishedUpdate): MetricsLine {
  const hints = groups.flatMap(({ episodes }) => episodes.find(({ hint }) => hint)?.hint ?? []);
  if (hints.length === 0) return {};
  return {
    "curriculum.hinted": hints.length / groups.length,
    "curriculum.hintSteps": hints.reduce((sum, steps) => sum + steps, 0) / hints.length,
  };
}

/** What branches shared, and the share of the states whose continuations earned differently. */
function branchMetrics({ groups }: FinishedUpdate): MetricsLine {
  const whole = groups.map(({ episodes }) => episodes.filter(({ stop }) => stop !== "broken"));
  const branches = whole
    .flat()
    .flatMap(({ branch, hint = 0 }) => (branch ? [branch.step - hint] : []));
  if (branches.length === 0) return {};
  const states = new Map<string, number[]>();
  for (const [g, episodes] of whole.entries())
    for (const { branch, return: earned } of episodes) {
      if (branch === undefined) continue;
      const state = `${g} ${branch.from} ${branch.step}`;
      const trunk = episodes.find(({ attempt }) => attempt === branch.from)!;
      states.set(state, [...(states.get(state) ?? [trunk.return]), earned]);
    }
  const differ = [...states.values()].filter((returns) => new Set(returns).size > 1);
  return {
    "branch.shared": branches.reduce((sum, steps) => sum + steps, 0),
    "branch.differ": differ.length / states.size,
  };
}

/** Updates between the weights that drew the episodes and those that learn; NaN if always none. */
function meanStaleness({ groups, index }: FinishedUpdate): number {
  const ages = groups.flatMap(({ episodes }) =>
    episodes.map(({ weights = Number.NaN }) => index - weights),
  );
  return ages.reduce((sum, age) => sum + age, 0) / ages.length;
}

/** The metrics of an evaluation on one split. */
export function evaluationMetrics(split: string, tally: Tally): MetricsLine {
  const { success, meanReturn, meanSteps, invalid, score } = rates(tally.all);
  const name = `eval.${split}`;
  return finite({
    [`${name}.success`]: success,
    [`${name}.return`]: meanReturn,
    [`${name}.steps`]: meanSteps,
    [`${name}.invalid`]: invalid,
    [`${name}.score`]: score,
    [`${name}.episodes`]: tally.all.episodes,
    [`${name}.broken`]: tally.all.broken,
    [`${name}.trained`]: trainedShare(tally.tokens),
    ...byType(name, tally),
  });
}

function byType(prefix: string, tally: Tally): MetricsLine {
  return Object.fromEntries(
    [...tally.byType].map(([type, counts]) => [`${prefix}.success.${type}`, rates(counts).success]),
  );
}

/** What was learnt, with a mark for each number that is not finite. */
export function learntMetrics(metrics: MetricsLine = {}): MetricsLine {
  // A server that does not report the gradient's norm leaves NaN there.
  const { gradNorm: _, ...computed } = metrics;
  return { ...metrics, ...markNotFinite(computed) };
}

/** JSON has no NaN: what was not measured is left out. */
export function finite(numbers: Readonly<Record<string, number>>): MetricsLine {
  return Object.fromEntries(Object.entries(numbers).filter(([, value]) => Number.isFinite(value)));
}

/** Its share of the time, its rows per call, and what was played at once. */
function paceMetrics(load: PaceLoad | undefined): MetricsLine {
  if (load === undefined) return {};
  return {
    "pace.busy": load.busySeconds / load.seconds,
    "pace.rows": load.rows / load.calls,
    "pace.live": load.live,
    "pace.carried": load.carried,
  };
}

/** A clock for the phases of an update. */

/** Seconds per phase, and a method that ends a phase. */
interface Clock<P extends string> {
  readonly laps: Readonly<Record<P, number>>;
  lap(phase: P): void;
}

/** Starts a clock; each phase starts when the previous one ends. */
export function createClock<P extends string>(phases: readonly P[]): Clock<P> {
  const laps = Object.fromEntries(phases.map((phase) => [phase, 0])) as Record<P, number>;
  let last = performance.now();
  return {
    laps,
    lap(phase) {
      const now = performance.now();
      laps[phase] = (now - last) / 1000;
      last = now;
    },
  };
}
