/** The live view of RWML: how often predictions are correct, and the estimated time. */
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import type { Activity } from "@pawl/core/train/activity.js";
import type { SeenAlarm } from "@pawl/core/train/watch.js";
import { number, percent } from "./format.js";
import { type Io, note } from "./io.js";
import { curve, phaseView, sparkline, successes } from "./phase-view.js";
import { alarmLine } from "./train-progress.js";

const LABEL = 13;
const MAIN = "rwml";
/** What the phases of `rwmlRun` are called. */
const PHASES: Readonly<Record<string, string>> = {
  reward: "opening the reward",
  model: "opening the model",
  collect: "collecting triplets",
  filter: "filtering triplets",
  forgetting: "measuring what was forgotten",
};

/** Shows the progress of RWML; its methods fit the callbacks of `rwmlRun`. */
export interface RwmlProgress {
  onPhase(phase: string): void;
  onMetrics(line: MetricsLine): void;
  onAlarm(alarm: SeenAlarm): void;
  onActivity(activity: Activity): void;
  /** What is being done now, in words. */
  doing(): string;
  end(): void;
}

/** Starts a live view for this many updates; `header` says what is trained where. */
export function rwmlProgress(io: Io, updates: number, header?: string): RwmlProgress {
  const { cyan, dim, green } = io.colors;
  const rewards: number[] = [];
  const heldOut: number[] = [];
  const evaluations = new Map<string, number[]>();
  let updatesBefore: number | undefined;
  let last: MetricsLine = {};
  const label = (text: string): string => dim(text.padEnd(LABEL));
  const more = (): readonly string[] => [
    ...(rewards.length === 0
      ? []
      : [
          `${label("reward")}  ${cyan(sparkline(rewards))}  ${number(rewards.at(-1)!, 3)}`,
          [
            `${label("predictions")}  exact ${percent(last["rwml.exact"] ?? Number.NaN)}`,
            equalGroups(last),
            `${number((last["train.tokens"] ?? 0) / (last["seconds.learn"] ?? 1))} tokens/s`,
          ].join(dim(" · ")),
        ]),
    ...(heldOut.length === 0
      ? []
      : [`${label("held out")}  ${green(curve(heldOut, (value) => number(value, 3)))}`]),
    ...[...evaluations].map(([split, values]) => `${label(split)}  ${green(curve(values))}`),
  ];
  const view = phaseView(io, { header, main: MAIN, more });

  return {
    onPhase: (phase) => view.onPhase(PHASES[phase] ?? phase),
    onMetrics(line) {
      const parts: string[] = [];
      const reward = line["rwml.reward"];
      if (reward === undefined) {
        parts.push(`${line["triplets.kept"]} of ${line["triplets.collected"]} triplets kept`);
      } else {
        rewards.push(reward);
        last = line;
        const update = line.update!;
        updatesBefore ??= update;
        const words = `update ${update + 1}/${updates}`;
        view.onCount({ words, done: update + 1, total: updates, before: updatesBefore });
        parts.push(words, `reward ${number(reward, 3)}`, `exact ${percent(line["rwml.exact"]!)}`);
        if (line["rwml.equalGroups"]! > 0) parts.push(equalGroups(line));
      }
      const measured = line["heldOut.reward"];
      if (measured !== undefined) {
        heldOut.push(measured);
        parts.push(`held out ${number(measured, 3)}`);
        const sometimes = line["heldOut.foreseen.some"];
        // Only groups with different rewards have anything to compare: without them, RWML learns
        // nothing.
        if (sometimes !== undefined) parts.push(`sometimes correct ${percent(sometimes)}`);
      }
      for (const [split, value] of successes(line)) {
        evaluations.set(split, [...(evaluations.get(split) ?? []), value]);
        parts.push(`${split} ${percent(value)}`);
      }
      if (reward !== undefined) parts.push(`${view.timeLeft()} left`);
      view.plain(parts.join(" · "));
      view.redraw();
    },
    onAlarm: (alarm) => note(io, alarmLine(io, alarm)),
    onActivity: view.onActivity,
    doing: view.doing,
    end: view.end,
  };
}

/** How many groups nothing could be learnt from. */
function equalGroups(line: MetricsLine): string {
  const count = line["rwml.equalGroups"] ?? Number.NaN;
  return `${number(count)} ${count === 1 ? "group" : "groups"} all equal`;
}
