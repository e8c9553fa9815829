/** What the live views of training share: what is trained where, the phase, and the time left. */
import { availableParallelism } from "node:os";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { successInterval } from "@pawl/core/success-interval.js";
import type { Activity } from "@pawl/core/train/activity.js";
import { duration, number, percent, textColumns } from "./format.js";
import { type Io, note } from "./io.js";
import { createLive } from "./live.js";

const BARS = "▁▂▃▄▅▆▇█";
const SPARKLINE_WIDTH = 48;
/** More evaluations than this are drawn as a curve. */
const FEW = 4;

/** Steps or updates that a phase has made. */
export interface Count {
  readonly words: string;
  readonly done: number;
  readonly total: number;
  /** Those that a resumed run had made before. */
  readonly before?: number;
}

/** When it was counted, and the first that was made here. */
interface Counted {
  readonly at: number;
  readonly first: { readonly done: number; readonly at: number } | undefined;
}

/** The first lines of a live view. */
export interface PhaseView {
  /** Writes a line about the whole run. */
  about(text: string): void;
  onPhase(phase: string): void;
  onActivity(activity: Activity): void;
  onCount(count: Count): void;
  /** Writes a line where there is no terminal. */
  plain(text: string): void;
  redraw(): void;
  timeLeft(): string;
  /** What is being done now, in words. */
  doing(): string;
  end(): void;
}

/** What a view shows besides. */
export interface ViewOptions {
  readonly header?: string | undefined;
  /** The phase whose end is the end of the run. */
  readonly main: string;
  /** The lines below. */
  more(): readonly string[];
}

/** Starts a live view; without a terminal, lines at regular times. */
export function phaseView(io: Io, { header, main, more }: ViewOptions): PhaseView {
  const live = createLive(io, () => `${duration(elapsed())}  ${doing()}`);
  const { bold, dim } = io.colors;
  const startedAt = performance.now();
  let phase = "";
  let count: (Count & Counted) | undefined;
  let activity: (Activity & { readonly since: number }) | undefined;
  /** When the phase began, or its first count after what was done to prepare it. */
  let since = startedAt;

  const elapsed = (): number => (performance.now() - startedAt) / 1000;
  const inPhase = (): string => {
    const words = count?.words ?? "";
    if (activity === undefined) return words;
    const { what, done, total, unit } = activity;
    const moves = `${what}: ${number(done)}/${number(total)} ${unit}`;
    return words === "" ? `· ${moves}` : `${words} · ${moves}`;
  };
  const doing = (): string => [phase, inPhase()].filter((part) => part !== "").join(" ");

  const timeLeft = (): string => {
    const now = performance.now();
    if (phase !== main && activity !== undefined) {
      const { done, total, since } = activity;
      return done === 0 ? "–" : duration(((now - since) / 1000 / done) * (total - done));
    }
    if (count === undefined) return "–";
    const { done, total, before = 0, first, at } = count;
    if (first === undefined) return "–";
    // The first one is slower than the others: once there are others, it says nothing.
    const each =
      first.done < done ? (at - first.at) / (done - first.done) : (at - since) / (done - before);
    return duration(Math.max(0, each * (total - done) - (now - at)) / 1000);
  };
  const lines = (): readonly string[] => {
    const time = `${duration(elapsed())} so far, ${timeLeft()} left${phase === main ? "" : " of this"}`;
    const now = [bold(phase), inPhase()].filter((part) => part !== "").join(" ");
    // A line of its own where it would not fit beside the rest.
    const fits = textColumns(`${doing()}  ${time}`) < (io.stderr.columns || 80);
    return [
      ...(header === undefined ? [] : [dim(header)]),
      ...(fits ? [`${now}  ${dim(time)}`] : [now, dim(time)]),
      ...more(),
    ];
  };
  const plain = (text: string): void => {
    if (!io.stderr.isTTY && !io.quiet) note(io, `${duration(elapsed())}  ${text}`);
  };
  const redraw = (): void => live.draw(lines);

  return {
    about(text) {
      // Above the view of a terminal, which would cut it off.
      if (io.stderr.isTTY && !io.quiet) note(io, dim(text));
      else plain(text);
    },
    onPhase(next) {
      phase = next;
      count = undefined;
      activity = undefined;
      since = performance.now();
      plain(next);
      redraw();
    },
    onActivity(next) {
      const same = activity?.what === next.what && next.done > 0;
      activity = { ...next, since: same ? activity!.since : performance.now() };
      // What prepares a phase is no part of its steps.
      if (phase !== main && count === undefined) since = performance.now();
      redraw();
    },
    onCount(next) {
      activity = undefined;
      const at = performance.now();
      const own = next.done > (next.before ?? 0) ? { done: next.done, at } : undefined;
      count = { ...next, at, first: count?.first ?? own };
      redraw();
    },
    plain,
    redraw,
    timeLeft,
    doing,
    end: () => live.end(io.stderr.isTTY ? lines() : []),
  };
}

/** What is trained where, in a line: the run folder, the world or data, the model, the engine. */
export function runHeader(
  folder: string,
  what: string,
  { model, engine }: { readonly model: { readonly start: string }; readonly engine: object },
): string {
  const {
    address = "embedded",
    threads = availableParallelism(),
    model: served = "",
  }: { address?: string; threads?: number; model?: string } = engine;
  const where =
    address === "embedded"
      ? `this machine's CPU, ${threads} ${threads === 1 ? "thread" : "threads"}`
      : `${address} ${served}`;
  return [folder, what, model.start, where.trim()].join(" · ");
}

/** The success of every split that a line of metrics evaluates. */
export function successes(line: MetricsLine): readonly (readonly [split: string, value: number])[] {
  return Object.entries(line).flatMap(([name, value]) => {
    const split = /^eval\.(\w+)\.success$/.exec(name)?.[1];
    return split === undefined ? [] : [[split, value] as const];
  });
}

/** The 95 % interval of an evaluation, such as `37 – 54`, in percent; nothing where it is not known. */
export function spanOf(line: MetricsLine, split: string): string {
  const [success, episodes] = ["success", "episodes"].map((name) => line[`eval.${split}.${name}`]);
  if (success === undefined || episodes === undefined || episodes === 0) return "";
  const successes = Math.round(success * episodes);
  const ends = successInterval({ successes, episodes }).map((end) => number(100 * end));
  return ` (${ends.join(" – ")})`;
}

/** Measurements over time: all of a few, the first and last with a curve of many. */
export function curve(
  values: readonly number[],
  show: (value: number) => string = percent,
): string {
  if (values.length <= FEW) return values.map(show).join(" → ");
  return `${show(values[0]!)} ${sparkline(values)} ${show(values.at(-1)!)}`;
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
