/** The live view of a comparison: which runs are in progress, the overall progress, and the estimated time. */
import type { ComparisonProgress } from "@pawl/studies/compare.js";
import { duration, percent } from "./format.js";
import { type Io, note, warn } from "./io.js";
import { createLive } from "./live.js";

/** Shows the progress of a comparison; its methods fit the callbacks of `compare`. */
export function comparisonProgress(io: Io) {
  const { bold, dim } = io.colors;
  const startedAt = performance.now();
  let last: ComparisonProgress | undefined;
  const elapsed = (): number => (performance.now() - startedAt) / 1000;
  const overview = (): string => {
    const { done = 0, all = 0, doneNow = 0 } = last ?? {};
    const left = doneNow > 0 ? duration((elapsed() / doneNow) * (all - done)) : "–";
    return `${done.toFixed(1)} of ${all} runs (${percent(all === 0 ? 1 : done / all)}), ${duration(elapsed())} so far, ${left} left`;
  };
  const lines = (): readonly string[] => [
    bold(overview()),
    ...[...(last?.running ?? [])].map(([id, { text }]) => `${id}  ${dim(text)}`),
  ];
  const live = createLive(io, overview);
  return {
    onProgress(progress: ComparisonProgress): void {
      last = progress;
      live.draw(lines);
    },
    onEnd(id: string, outcome: "done" | Error): void {
      if (outcome !== "done") warn(io, `${id}: ${outcome.message}`);
      else if (!io.stderr.isTTY && !io.quiet) note(io, `${id} done; ${overview()}`);
    },
    end: () => live.end(io.stderr.isTTY ? lines() : []),
  };
}
