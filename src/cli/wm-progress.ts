/** The live view of a world model's training. */
import type { MetricsLine } from "../runs/metrics-file.js";
import type { WorldTrainStep } from "../worldmodel/train.js";
import { duration, number, percent } from "./format.js";
import { type Io, note } from "./io.js";
import { createLive } from "./live.js";

/** Shows the progress of training; its methods fit the callbacks of `trainWorldModel`. */
export interface WorldProgress {
  onStep(step: WorldTrainStep): void;
  onMetrics(line: MetricsLine): void;
  end(): void;
}

/** Starts a live view; `title` distinguishes several trainings. */
export function worldProgress(io: Io, title = "world model"): WorldProgress {
  const live = createLive(io);
  const { bold, dim } = io.colors;
  const startedAt = performance.now();
  let firstStep: number | undefined;
  let shown = "";
  let matches = "";
  const lines = (): readonly string[] => [
    `${bold(title)} ${shown}`,
    ...(matches === "" ? [] : [`${dim("exact match on test turns")} ${matches}`]),
  ];
  return {
    onStep({ step, steps, loss }) {
      firstStep ??= step;
      const seconds = (performance.now() - startedAt) / 1000;
      const left = (seconds / (step + 1 - firstStep)) * (steps - step - 1);
      shown = `step ${step + 1}/${steps}, loss ${number(loss, 4)}, ${duration(left)} left`;
      live.draw(lines);
    },
    onMetrics(line) {
      const match = line["wm.exactMatch"];
      if (match !== undefined) matches += `${matches === "" ? "" : " → "}${percent(match)}`;
      if (!io.stderr.isTTY && !io.quiet) {
        const score = match === undefined ? "" : `, exact match ${percent(match)}`;
        note(io, `${title}: ${shown}${score}`);
      }
      live.draw(lines);
    },
    end: () => live.end(io.stderr.isTTY ? lines() : []),
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
