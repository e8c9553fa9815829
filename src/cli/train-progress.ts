/** The live view of training: progress, metrics so far, and the estimated time. */
import type { MetricsLine } from "../runs/metrics-file.js";
import type { SftStep } from "../train/sft.js";
import { duration, number, percent } from "./format.js";
import type { Io } from "./io.js";
import { createLive } from "./live.js";

const BARS = "▁▂▃▄▅▆▇█";
const SPARKLINE_WIDTH = 48;
const LABEL = 13;

/** Shows the progress of training; its methods fit the callbacks of `trainRun`. */
export interface TrainProgress {
  onPhase(phase: string): void;
  onWarmStart(step: SftStep): void;
  onMetrics(line: MetricsLine): void;
  end(): void;
}

/** Starts a live view for this many updates. */
export function trainProgress(io: Io, updates: number): TrainProgress {
  const live = createLive(io);
  const { bold, cyan, dim, green } = io.colors;
  const startedAt = performance.now();
  const returns: number[] = [];
  const evaluations = new Map<string, number[]>();
  let phase = "";
  let detail = "";
  let last: MetricsLine = {};
  let updatesDone = 0;
  let updatesBefore: number | undefined;
  let rlStartedAt = startedAt;

  const plain = (text: string): void => {
    if (!io.stderr.isTTY) io.stderr.write(`${duration(elapsed())}  ${text}\n`);
  };
  const elapsed = (): number => (performance.now() - startedAt) / 1000;

  const timeLeft = (): string => {
    // A resumed run has already done some of its updates.
    const done = updatesDone - (updatesBefore ?? 0);
    const seconds = (performance.now() - rlStartedAt) / 1000;
    return done === 0 ? "–" : duration((seconds / done) * (updates - updatesDone));
  };

  const lines = (): readonly string[] => [
    `${bold(phase)} ${detail}  ${dim(`${duration(elapsed())} so far, ${timeLeft()} left`)}`,
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
      ([split, values]) =>
        `${dim(split.padEnd(LABEL))}  ${green(values.map((value) => percent(value)).join(" → "))}`,
    ),
  ];

  return {
    onPhase(next) {
      phase = next;
      detail = "";
      if (next === "rl") rlStartedAt = performance.now();
      plain(next);
      live.draw(lines);
    },
    onWarmStart({ step, steps, loss }) {
      detail = `step ${step + 1}/${steps}, loss ${number(loss, 3)}`;
      if ((step + 1) % 25 === 0 || step + 1 === steps) plain(detail);
      live.draw(lines);
    },
    onMetrics(line) {
      const update = line.update ?? -1;
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
    end: () => live.end(io.stderr.isTTY ? lines() : []),
  };
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
