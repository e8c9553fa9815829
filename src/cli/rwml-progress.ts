/** The live view of RWML: how often predictions are correct, and the estimated time. */
import type { MetricsLine } from "../runs/metrics-file.js";
import type { SeenAlarm } from "../train/watch.js";
import { duration, number, percent } from "./format.js";
import { type Io, note } from "./io.js";
import { createLive } from "./live.js";
import { alarmLine, sparkline } from "./train-progress.js";

/** Shows the progress of RWML; its methods fit the callbacks of `rwmlRun`. */
export interface RwmlProgress {
  onPhase(phase: string): void;
  onMetrics(line: MetricsLine): void;
  onAlarm(alarm: SeenAlarm): void;
  end(): void;
}

/** Starts a live view for this many updates. */
export function rwmlProgress(io: Io, updates: number): RwmlProgress {
  const live = createLive(io);
  const { bold, cyan, dim, green } = io.colors;
  const startedAt = performance.now();
  const rewards: number[] = [];
  const heldOut: number[] = [];
  let phase = "";
  let detail = "";
  let trainingSince = startedAt;

  const elapsed = (): number => (performance.now() - startedAt) / 1000;
  const timeLeft = (): string => {
    const seconds = (performance.now() - trainingSince) / 1000;
    const done = rewards.length;
    return done === 0 ? "–" : duration((seconds / done) * (updates - done));
  };
  const plain = (text: string): void => {
    if (!io.stderr.isTTY && !io.quiet) note(io, `${duration(elapsed())}  ${text}`);
  };
  const lines = (): readonly string[] => [
    `${bold(phase)} ${detail}  ${dim(`${duration(elapsed())} so far, ${timeLeft()} left`)}`,
    ...(rewards.length === 0
      ? []
      : [`${dim("reward")}    ${cyan(sparkline(rewards))}  ${number(rewards.at(-1)!, 3)}`]),
    ...(heldOut.length === 0
      ? []
      : [`${dim("held out")}  ${green(heldOut.map((value) => number(value, 3)).join(" → "))}`]),
  ];

  return {
    onPhase(next) {
      phase = next;
      detail = "";
      if (next === "rwml") trainingSince = performance.now();
      plain(next);
      live.draw(lines);
    },
    onMetrics(line) {
      const parts: string[] = [];
      const reward = line["rwml.reward"];
      if (reward === undefined) {
        parts.push(`${line["triplets.kept"]} of ${line["triplets.collected"]} triplets kept`);
      } else {
        rewards.push(reward);
        detail = `update ${line.update! + 1}/${updates}`;
        parts.push(detail, `reward ${number(reward, 3)}`, `exact ${percent(line["rwml.exact"]!)}`);
        if (line["rwml.equalGroups"]! > 0)
          parts.push(`${line["rwml.equalGroups"]} groups all equal`);
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
      for (const [name, value] of Object.entries(line)) {
        const split = /^eval\.(\w+)\.success$/.exec(name)?.[1];
        if (split !== undefined) parts.push(`${split} ${percent(value)}`);
      }
      plain(parts.join(" · "));
      live.draw(lines);
    },
    onAlarm: (alarm) => note(io, alarmLine(io, alarm)),
    end: () => live.end(io.stderr.isTTY ? lines() : []),
  };
}
