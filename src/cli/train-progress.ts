/** The live view of training: progress, metrics so far, and the estimated time. */
import type { MetricsLine } from "../runs/metrics-file.js";
import type { Activity } from "../train/activity.js";
import type { SftStep } from "../train/sft.js";
import type { SeenAlarm } from "../train/watch.js";
import { duration, number, percent } from "./format.js";
import { type Io, note } from "./io.js";
import { createLive } from "./live.js";

const BARS = "▁▂▃▄▅▆▇█";
const SPARKLINE_WIDTH = 48;
const LABEL = 13;
/** More evaluations than this are drawn as a curve. */
const FEW = 4;

/** Shows the progress of training; its methods fit the callbacks of `trainRun`. */
export interface TrainProgress {
  onPhase(phase: string): void;
  onWarmStart(step: SftStep): void;
  onMetrics(line: MetricsLine): void;
  onAlarm(alarm: SeenAlarm): void;
  onActivity(activity: Activity): void;
  /** What is being done now, in words. */
  doing(): string;
  end(): void;
}

/** Starts a live view for this many updates; `header` says what is trained where. */
export function trainProgress(io: Io, updates: number, header?: string): TrainProgress {
  const live = createLive(io, () => `${duration(elapsed())}  ${doing()}`);
  const { bold, cyan, dim, green } = io.colors;
  const startedAt = performance.now();
  const returns: number[] = [];
  const evaluations = new Map<string, number[]>();
  let phase = "";
  let detail = "";
  let activity: (Activity & { readonly since: number }) | undefined;
  let warmStartedAt: number | undefined;
  let warmShare = 0;
  let last: MetricsLine = {};
  let updatesDone = 0;
  let updatesBefore: number | undefined;
  let rlStartedAt = startedAt;

  const plain = (text: string): void => {
    if (!io.stderr.isTTY && !io.quiet) note(io, `${duration(elapsed())}  ${text}`);
  };
  const elapsed = (): number => (performance.now() - startedAt) / 1000;

  /** What is being done now, and how far it is. */
  const doing = (): string => {
    const parts = [phase, detail].filter((part) => part !== "").join(" ");
    if (activity === undefined) return parts;
    const { what, done, total, unit } = activity;
    return `${parts} · ${what}: ${number(done)}/${number(total)} ${unit}`;
  };

  const timeLeft = (): string => {
    if (phase === "warm start" && warmStartedAt !== undefined && warmShare > 0) {
      const seconds = (performance.now() - warmStartedAt) / 1000;
      return duration((seconds / warmShare) * (1 - warmShare));
    }
    if (phase !== "rl" && activity !== undefined && activity.done > 0) {
      const seconds = (performance.now() - activity.since) / 1000;
      return duration((seconds / activity.done) * (activity.total - activity.done));
    }
    // A resumed run has already done some of its updates.
    const done = updatesDone - (updatesBefore ?? 0);
    const seconds = (performance.now() - rlStartedAt) / 1000;
    return done === 0 ? "–" : duration((seconds / done) * (updates - updatesDone));
  };

  const lines = (): readonly string[] => [
    ...(header === undefined ? [] : [dim(header)]),
    `${bold(phase)} ${doing().slice(phase.length).trimStart()}  ${dim(`${duration(elapsed())} so far, ${timeLeft()} left${phase === "rl" ? "" : " of this"}`)}`,
    ...(updatesDone === 0
      ? []
      : [
          `${dim("reward".padEnd(LABEL))}  ${cyan(sparkline(returns))}  ${number(returns.at(-1) ?? Number.NaN, 2)}`,
          `${dim("train success".padEnd(LABEL))}  ${percent(last["train.success"] ?? Number.NaN)}`,
          [
            `λ ${number(last["world.lambda"] ?? Number.NaN, 2)}`,
            `world loss ${number(last["world.loss"] ?? Number.NaN, 4)}`,
            `clipped ${percent(last["world.clipped"] ?? Number.NaN)}`,
            `p ${number(last["world.p"] ?? Number.NaN, 2)}`,
            `KL ${number(last["policy.kl"] ?? Number.NaN, 4)}`,
            `${number((last["train.tokens"] ?? 0) / (last["seconds.learn"] ?? 1))} tokens/s`,
          ].join(dim(" · ")),
        ]),
    ...[...evaluations].map(
      ([split, values]) => `${dim(split.padEnd(LABEL))}  ${green(evaluationCurve(values))}`,
    ),
  ];

  return {
    onPhase(next) {
      phase = next;
      detail = "";
      activity = undefined;
      if (next === "rl") rlStartedAt = performance.now();
      plain(next);
      live.draw(lines);
    },
    onWarmStart({ step, steps, loss }) {
      activity = undefined;
      warmStartedAt ??= performance.now();
      warmShare = (step + 1) / steps;
      detail = `step ${step + 1}/${steps}, loss ${number(loss, 3)}`;
      if ((step + 1) % 25 === 0 || step + 1 === steps) plain(detail);
      live.draw(lines);
    },
    onMetrics(line) {
      const update = line.update ?? -1;
      activity = undefined;
      // An update with only broken episodes has no success and no return, but still counts as an
      // update.
      if (update >= 0) {
        updatesBefore ??= update;
        updatesDone = update + 1;
        if (line["train.return"] !== undefined) returns.push(line["train.return"]);
        last = line;
        detail = `update ${updatesDone}/${updates}`;
      }
      const evaluated: string[] = [];
      for (const [name, value] of Object.entries(line)) {
        const split = /^eval\.(\w+)\.success$/.exec(name)?.[1];
        if (split === undefined) continue;
        evaluations.set(split, [...(evaluations.get(split) ?? []), value]);
        evaluated.push(`${split} ${percent(value)}`);
      }
      const parts = [
        ...(update < 0
          ? ["warm-started"]
          : [
              detail,
              `reward ${number(line["train.return"] ?? Number.NaN, 2)}`,
              `success ${percent(line["train.success"] ?? Number.NaN)}`,
              `λ ${number(line["world.lambda"] ?? Number.NaN, 2)}`,
            ]),
        ...evaluated,
        ...(update < 0 ? [] : [`${timeLeft()} left`]),
      ];
      plain(parts.join(" · "));
      live.draw(lines);
    },
    onAlarm: (alarm) => note(io, alarmLine(io, alarm)),
    onActivity(next) {
      const same = activity?.what === next.what && next.done > 0;
      activity = { ...next, since: same ? activity!.since : performance.now() };
      live.draw(lines);
    },
    doing,
    end: () => live.end(io.stderr.isTTY ? lines() : []),
  };
}

/** An alarm as a line of the terminal. */
export function alarmLine(io: Io, { alarm, update, text }: SeenAlarm): string {
  return `${io.colors.yellow(`alarm ${alarm}:`)} update ${update + 1}: ${text}`;
}

/** The values of an evaluation over time: all of a few, the first and last with a curve of many. */
function evaluationCurve(values: readonly number[]): string {
  if (values.length <= FEW) return values.map((value) => percent(value)).join(" → ");
  return `${percent(values[0]!)} ${sparkline(values)} ${percent(values.at(-1)!)}`;
}

/** Values from 0 to their maximum as a row of bars; long series show means of neighbours. */
export function sparkline(values: readonly number[]): string {
  const top = Math.max(...values);
  const size = Math.max(1, Math.ceil(values.length / SPARKLINE_WIDTH));
  let bars = "";
  for (let i = 0; i < values.length; i += size) {
    const some = values.slice(i, i + size);
    const mean = some.reduce((sum, value) => sum + value, 0) / some.length;
    const share = top > 0 ? Math.max(0, mean / top) : 0;
    bars += BARS[Math.min(BARS.length - 1, Math.floor(share * BARS.length))];
  }
  return bars;
}
