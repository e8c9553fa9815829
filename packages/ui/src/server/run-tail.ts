/** What a list of runs says of a run's metrics, kept up as lines are added. */
import { type Headline, headlineAfter } from "@pawl/core/runs/headline.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { lastLines, type MetricsPlace, readMetricsFrom } from "./metrics-table.js";

/** Updates whose duration gives the time left. */
const RECENT = 20;

/** The end of a run's metrics. */
export interface RunTail {
  /** How far it was read. */
  readonly place: MetricsPlace;
  /** Whether lines were left out because they are damaged. */
  readonly isDamaged: boolean;
  /** Updates done. */
  readonly update: number | null;
  /** Seconds that the latest updates took. */
  readonly seconds: readonly number[];
  readonly headline: Headline | undefined;
}

/** Reads the end of a run's metrics; of a file that was read before, only what is new. */
export function readTail(folder: string, before?: RunTail): RunTail {
  if (before !== undefined) {
    const { lines, place, damaged } = readMetricsFrom(folder, before.place);
    // A resumed run writes its metrics anew, without the updates that it repeats.
    if (place.file === before.place.file && place.end >= before.place.end)
      return {
        ...lines.reduce(withLine, before),
        place,
        isDamaged: before.isDamaged || damaged.length > 0,
      };
  }
  // Old lines matter only if they have an evaluation.
  const { lines, place, damaged } = lastLines(folder, (texts) => {
    const evaluated = texts.slice(0, -RECENT).findLast((text) => text.includes('"eval.'));
    return [...(evaluated === undefined ? [] : [evaluated]), ...texts.slice(-RECENT)];
  });
  const none = { update: null, seconds: [], headline: undefined };
  return lines.reduce<RunTail>(withLine, { ...none, place, isDamaged: damaged.length > 0 });
}

function withLine(tail: RunTail, line: MetricsLine): RunTail {
  const { update } = line;
  const parts = Object.keys(line).filter((name) => name.startsWith("seconds."));
  const took = parts.reduce((sum, name) => sum + line[name]!, 0);
  return {
    ...tail,
    update: update !== undefined && update >= 0 ? update + 1 : tail.update,
    seconds: parts.length === 0 ? tail.seconds : [...tail.seconds, took].slice(-RECENT),
    headline: headlineAfter(tail.headline, line),
  };
}

/** How long the rest will take, if the last updates are any guide. */
export function secondsLeft({ update, seconds }: RunTail, updates: number | null): number | null {
  if (update === null || updates === null || seconds.length === 0) return null;
  const mean = seconds.reduce((sum, one) => sum + one, 0) / seconds.length;
  return Math.max(0, updates - update) * mean;
}
