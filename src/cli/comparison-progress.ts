/** The live view of a comparison: which runs are in progress, the overall progress, and the estimated time. */
import type { ComparisonProgress } from "../bench/compare.js";
import { duration, percent } from "./format.js";
import { type Io, note, warn } from "./io.js";
import { createLive } from "./live.js";

/** In a log, progress is a line whenever another of so many parts of the work is done. */
const PARTS = 20;

/** Shows the progress of a comparison; its methods fit the callbacks of `compare`. */
export function comparisonProgress(io: Io) {
  const live = createLive(io);
  const { bold, dim } = io.colors;
  const isLog = io.stderr.isTTY !== true && io.quiet !== true;
  const startedAt = performance.now();
  let last: ComparisonProgress | undefined;
  let parts = 0;
  const elapsed = (): number => (performance.now() - startedAt) / 1000;
  const share = (): number => (last === undefined || last.all === 0 ? 1 : last.done / last.all);
  const overview = (): string => {
    const { done = 0, all = 0, doneNow = 0 } = last ?? {};
    const left = doneNow > 0 ? duration((elapsed() / doneNow) * (all - done)) : "–";
    return `${done.toFixed(1)} of ${all} runs (${percent(share())}), ${duration(elapsed())} so far, ${left} left`;
  };
  const lines = (): readonly string[] => [
    bold(overview()),
    ...[...(last?.running ?? [])].map(([id, { text }]) => `${id}  ${dim(text)}`),
  ];
  return {
    onProgress(progress: ComparisonProgress): void {
      last = progress;
      live.draw(lines);
      const reached = Math.floor(PARTS * share());
      // The end of a run has a line of its own.
      if (reached > parts && progress.running.size > 0) {
        parts = reached;
        if (isLog) note(io, overview());
      }
    },
    onEnd(id: string, outcome: "done" | Error): void {
      if (outcome !== "done") warn(io, `${id}: ${outcome.message}`);
      else if (isLog) note(io, `${id} done; ${overview()}`);
    },
    end: () => live.end(io.stderr.isTTY ? lines() : []),
  };
}
