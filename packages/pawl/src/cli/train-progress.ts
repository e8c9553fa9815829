/** The live view of training: progress, metrics so far, and the estimated time. */
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import type { Activity } from "@pawl/core/train/activity.js";
import type { SftStep } from "@pawl/core/train/sft.js";
import type { SeenAlarm } from "@pawl/core/train/watch.js";
import { number, percent } from "./format.js";
import { type Io, note } from "./io.js";
import { curve, phaseView, spanOf, sparkline, successes } from "./phase-view.js";

const LABEL = 13;
const MAIN = "rl";

/** Shows the progress of training; its methods fit the callbacks of `trainRun`. */
export interface TrainProgress {
  /** Writes a line about the whole run. */
  onAbout(text: string): void;
  onPhase(phase: string): void;
  onWarmStart(step: SftStep): void;
  onMetrics(line: MetricsLine): void;
  onAlarm(alarm: SeenAlarm): void;
  onActivity(activity: Activity): void;
  /** What is being done now, in words. */
  doing(): string;
  end(): void;
}

/** What a view of training starts with. */
export interface TrainView {
  /** What is trained where. */
  readonly header?: string;
  /** The metrics of a resumed run so far. */
  earlier?(): readonly MetricsLine[];
}

/** Starts a live view for this many updates. */
export function trainProgress(
  io: Io,
  updates: number,
  { header, earlier }: TrainView = {},
): TrainProgress {
  const { cyan, dim, green } = io.colors;
  const returns: number[] = [];
  const evaluations = new Map<string, number[]>();
  const spans = new Map<string, string>();
  let last: MetricsLine = {};
  let updatesDone = 0;
  let updatesBefore = 0;

  const more = (): readonly string[] => [
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
        `${dim(split.padEnd(LABEL))}  ${green(curve(values))}${dim(spans.get(split)!)}`,
    ),
  ];
  const view = phaseView(io, { header, main: MAIN, more });

  /** Takes the numbers that the curves need; says which update they are of. */
  const remember = (line: MetricsLine): number => {
    for (const [split, value] of successes(line)) {
      evaluations.set(split, [...(evaluations.get(split) ?? []), value]);
      spans.set(split, spanOf(line, split));
    }
    const update = line.update ?? -1;
    // An update with only broken episodes has no success and no return, but still counts as an
    // update.
    if (update < 0) return update;
    updatesDone = update + 1;
    if (line["train.return"] !== undefined) returns.push(line["train.return"]);
    last = line;
    return update;
  };

  const count = (): void => {
    const words = `update ${updatesDone}/${updates}`;
    view.onCount({ words, done: updatesDone, total: updates, before: updatesBefore });
  };

  return {
    onAbout: view.about,
    onPhase(phase) {
      view.onPhase(phase);
      // A run without a checkpoint is warm-started and evaluated again.
      if (phase !== MAIN || evaluations.size > 0) return;
      for (const line of earlier?.() ?? []) remember(line);
      updatesBefore = updatesDone;
      if (updatesDone > 0) count();
    },
    onWarmStart({ step, steps, loss }) {
      const done = step + 1;
      const words = `step ${done}/${steps}, loss ${number(loss, 3)}`;
      view.onCount({ words, done, total: steps });
      if (done % 25 === 0 || done === steps) view.plain(words);
    },
    onMetrics(line) {
      const update = remember(line);
      if (update >= 0) count();
      else view.redraw();
      if (update >= 0)
        view.plain(
          [
            `update ${updatesDone}/${updates}`,
            `reward ${number(line["train.return"] ?? Number.NaN, 2)}`,
            `success ${percent(line["train.success"] ?? Number.NaN)}`,
            `λ ${number(line["world.lambda"] ?? Number.NaN, 2)}`,
            `${view.timeLeft()} left`,
          ].join(" · "),
        );
      const evaluated = successes(line).map(
        ([split, value]) => `${split} ${percent(value)}${spanOf(line, split)}`,
      );
      // A line of its own: with the update's it would be too long for a terminal.
      if (evaluated.length > 0)
        view.plain([...(update < 0 ? ["start"] : []), ...evaluated].join(" · "));
    },
    onAlarm: (alarm) => note(io, alarmLine(io, alarm)),
    onActivity: view.onActivity,
    doing: view.doing,
    end: view.end,
  };
}

/** An alarm as a line of the terminal. */
export function alarmLine(io: Io, { alarm, update, text }: SeenAlarm): string {
  return `${io.colors.yellow(`alarm ${alarm}:`)} update ${update + 1}: ${text}`;
}
