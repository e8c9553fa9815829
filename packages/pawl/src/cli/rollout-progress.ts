/**
 * The live view of a rollout: a row per group and a line of totals; plain lines without a terminal.
 */
import type { Episode, EpisodePlan } from "@pawl/core/rollout/episode.js";
import { createTally, rates } from "@pawl/core/rollout/tally.js";
import { duration, number, percent } from "./format.js";
import { type Io, note } from "./io.js";
import { createLive } from "./live.js";

/** Without a terminal, lines of totals are at least this far apart. */
const PLAIN_LINE_MS = 2_000;

type Mark = "waiting" | "running" | "solved" | "failed" | "broken";

/** Shows the progress of a rollout; its methods fit the rollout's callbacks. */
export interface RolloutProgress {
  onStart(plan: EpisodePlan): void;
  onStep(plan: EpisodePlan): void;
  onEpisode(episode: Episode): void;
  end(): void;
}

/** Starts a live view for this many groups. */
export function rolloutProgress(io: Io, groups: number, groupSize: number): RolloutProgress {
  const total = groups * groupSize;
  const marks = new Map<number, { title: string; marks: Mark[] }>();
  const tally = createTally();
  const startedAt = performance.now();
  const live = createLive(io);
  let steps = 0;
  let plainLineAt = startedAt;

  const mark = (group: number, attempt: number, value: Mark, title: string): void => {
    const row = marks.get(group) ?? { title, marks: new Array<Mark>(groupSize).fill("waiting") };
    row.marks[attempt] = value;
    marks.set(group, row);
  };

  const totals = (): string => {
    const { all } = tally;
    const { success, invalid } = rates(all);
    const done = all.episodes + all.broken;
    const seconds = (performance.now() - startedAt) / 1000;
    const parts = [
      `${done}/${total} episodes`,
      `success ${percent(success)}`,
      `invalid ${percent(invalid)}`,
      ...(all.broken > 0 ? [`broken ${all.broken}`] : []),
      `${number(steps / seconds)} steps/s`,
      done < total ? `${duration((seconds * (total - done)) / done)} left` : duration(seconds),
    ];
    return parts.join(" · ");
  };

  const lines = (): readonly string[] => {
    const room = Math.max(1, (io.stderr.rows || 24) - 3);
    // Running groups come last, so if there is no room for all, the oldest rows go.
    const rows = [...marks.entries()].sort(([a], [b]) => a - b).slice(-room);
    return [...rows.map(([group, row]) => groupLine(group, row.title, row.marks, io)), totals()];
  };

  return {
    onStart: ({ group, attempt, task }) =>
      mark(group, attempt, "running", `${task.type} ${task.id}`),
    onStep() {
      steps++;
      live.draw(lines);
    },
    onEpisode(episode) {
      tally.add(episode);
      const { group, attempt, task, stop, success } = episode;
      const value = stop === "broken" ? "broken" : success ? "solved" : "failed";
      mark(group, attempt, value, `${task.type} ${task.id}`);
      if (io.stderr.isTTY) return live.draw(lines);
      if (io.quiet || performance.now() - plainLineAt < PLAIN_LINE_MS) return;
      plainLineAt = performance.now();
      note(io, totals());
    },
    end: () => live.end(io.stderr.isTTY ? lines() : [totals()]),
  };
}

function groupLine(group: number, title: string, marks: readonly Mark[], io: Io): string {
  const { dim, green, red, yellow } = io.colors;
  const signs: Readonly<Record<Mark, string>> = {
    waiting: dim("·"),
    running: yellow("▸"),
    solved: green("✓"),
    failed: red("✗"),
    broken: red("!"),
  };
  const solved = marks.filter((value) => value === "solved").length;
  return `${dim(`group ${String(group).padStart(3)}`)}  ${title.padEnd(28)}  ${marks.map((value) => signs[value]).join("")}  ${solved}/${marks.length}`;
}
