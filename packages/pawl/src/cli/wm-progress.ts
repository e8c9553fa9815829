/** The live view of a world model's training. */
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import type { Activity } from "@pawl/core/train/activity.js";
import type { WorldTrainStep } from "@pawl/worldmodel/train.js";
import { duration, number, percent } from "./format.js";
import type { Io } from "./io.js";
import { createLive } from "./live.js";
import { type Count, curve, phaseView, sparkline } from "./phase-view.js";

const LABEL = 13;
/** What the phases before learning are called. */
const PHASES: Readonly<Record<string, string>> = {
  data: "reading the data",
  model: "opening the model",
};

/** Shows the progress of training; its methods fit the callbacks of `trainWorldModel`. */
export interface WorldProgress {
  onPhase(phase: string): void;
  onStep(step: WorldTrainStep): void;
  onMetrics(line: MetricsLine): void;
  onActivity(activity: Activity): void;
  /** What is being done now, in words. */
  doing(): string;
  end(): void;
}

/** Starts a live view; `title` distinguishes several trainings, `header` says what is trained where. */
export function worldProgress(io: Io, title = "world model", header?: string): WorldProgress {
  const { cyan, dim, green } = io.colors;
  const losses: number[] = [];
  const matches: number[] = [];
  let stepsBefore: number | undefined;
  let last: Count | undefined;
  const more = (): readonly string[] => [
    ...(losses.length === 0
      ? []
      : [`${dim("loss".padEnd(LABEL))}  ${cyan(sparkline(losses))}  ${number(losses.at(-1)!, 4)}`]),
    ...(matches.length === 0
      ? []
      : [`${dim("exact match".padEnd(LABEL))}  ${green(curve(matches))} of test turns`]),
  ];
  const view = phaseView(io, { header, main: title, more });
  return {
    onPhase(phase) {
      stepsBefore = undefined;
      view.onPhase(PHASES[phase] ?? title);
    },
    onStep({ step, steps, loss }) {
      stepsBefore ??= step;
      const words = `step ${step + 1}/${steps}, loss ${number(loss, 4)}`;
      last = { words, done: step + 1, total: steps, before: stepsBefore };
      view.onCount(last);
    },
    onMetrics(line) {
      if (line["wm.loss"] !== undefined) losses.push(line["wm.loss"]);
      const match = line["wm.exactMatch"];
      if (match !== undefined) matches.push(match);
      const score = match === undefined ? "" : ` · exact match ${percent(match)}`;
      // An evaluation is over when it is reported.
      if (last !== undefined) view.onCount(last);
      view.plain(`${title} ${last?.words ?? ""}${score} · ${view.timeLeft()} left`);
    },
    onActivity: view.onActivity,
    doing: view.doing,
    end: view.end,
  };
}

/** Shows how many items are done. */
export interface CountProgress {
  onCount(done: number): void;
  end(): void;
}

/** Starts a count up to `total`; it is only shown on a terminal. */
export function countProgress(io: Io, title: string, total: number): CountProgress {
  const live = createLive(io);
  const { bold, dim } = io.colors;
  const startedAt = performance.now();
  return {
    onCount(done) {
      const seconds = (performance.now() - startedAt) / 1000;
      const left = duration((seconds / done) * (total - done));
      live.draw(() => [
        `${bold(title)} ${number(done)} of ${number(total)}  ${dim(`${left} left`)}`,
      ]);
    },
    end: () => live.end([]),
  };
}
