/** The live view of training: where it stands, how it went so far, and how long it will take. */
import type { MetricsLine } from "../runs/metrics-file.js";
import type { SftStep } from "../train/sft.js";
import { duration, number, percent } from "./format.js";
import type { Io } from "./io.js";
import { createLive } from "./live.js";

const BARS = "▁▂▃▄▅▆▇█";
const SPARKLINE_WIDTH = 48;

/** Shows what training does; its methods fit the callbacks of `trainRun`. */
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
  const successes: number[] = [];
  const evaluations = new Map<string, number[]>();
  let phase = "";
  let detail = "";
  let last: MetricsLine = {};
  let rlStartedAt = startedAt;

  const plain = (text: string): void => {
    if (!io.stderr.isTTY) io.stderr.write(`${duration(elapsed())}  ${text}\n`);
  };
  const elapsed = (): number => (performance.now() - startedAt) / 1000;

  const timeLeft = (): string => {
    const done = successes.length;
    const seconds = (performance.now() - rlStartedAt) / 1000;
    return done === 0 ? "–" : duration((seconds / done) * (updates - done));
  };

  const lines = (): readonly string[] => [
    `${bold(phase)} ${detail}  ${dim(`${duration(elapsed())} so far, ${timeLeft()} left`)}`,
    ...(successes.length === 0
      ? []
      : [
          `${dim("train success")}  ${cyan(sparkline(successes))}  ${percent(successes.at(-1)!)}`,
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
        `${dim(split.padEnd(13))}  ${green(values.map((value) => percent(value)).join(" → "))}`,
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
      const success = line["train.success"];
      if (success !== undefined) {
        successes.push(success);
        last = line;
        detail = `update ${line.update! + 1}/${updates}`;
      }
      const evaluated: string[] = [];
      for (const [name, value] of Object.entries(line)) {
        const split = /^eval\.(\w+)\.success$/.exec(name)?.[1];
        if (split === undefined) continue;
        evaluations.set(split, [...(evaluations.get(split) ?? []), value]);
        evaluated.push(`${split} ${percent(value)}`);
      }
      const parts = [
        ...(success === undefined
          ? ["warm-started"]
          : [
              detail,
              `success ${percent(success)}`,
              `λ ${number(line["world.lambda"] ?? Number.NaN, 2)}`,
            ]),
        ...evaluated,
        ...(success === undefined ? [] : [`${timeLeft()} left`]),
      ];
      plain(parts.join(" · "));
      live.draw(lines);
    },
    end: () => live.end(io.stderr.isTTY ? lines() : []),
  };
}

/** The course of shares between 0 and 1, as a row of bars; long ones show means of neighbours. */
export function sparkline(values: readonly number[]): string {
  const size = Math.max(1, Math.ceil(values.length / SPARKLINE_WIDTH));
  let bars = "";
  for (let i = 0; i < values.length; i += size) {
    const some = values.slice(i, i + size);
    const mean = some.reduce((sum, value) => sum + value, 0) / some.length;
    bars += BARS[Math.min(BARS.length - 1, Math.floor(mean * BARS.length))];
  }
  return bars;
}
