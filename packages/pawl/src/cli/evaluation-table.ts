/** The results of an evaluation, for people and for programs. */
import { type Counts, rates, type Tally } from "@pawl/core/rollout/tally.js";
import { successInterval } from "@pawl/core/success-interval.js";
import { attemptLines } from "./attempt-lines.js";
import { brokenLines } from "./broken-lines.js";
import { number, percent, table } from "./format.js";

/** Success by task type and overall with 95 % intervals, like the paper's tables. */
export function evaluationTable(tally: Tally): string[] {
  const types = [...tally.byType].sort(([a], [b]) => a.localeCompare(b));
  const rows: [string, Counts][] = [...types, ["all", tally.all]];
  const scored = tally.all.scored > 0;
  // Several attempts at one task are not independent: an interval over them would be too narrow.
  const once = tally.attempts.solvedWithin.length < 2;
  const header = [
    "task type",
    once ? "tasks" : "episodes",
    "success",
    ...(once ? ["95 % interval"] : []),
    ...(scored ? ["score"] : []),
    "steps",
    "invalid",
    "broken",
  ];
  const lines = table(
    header,
    rows.map(([type, counts]) => {
      const { success, meanSteps, invalid, score } = rates(counts);
      const [low, high] = successInterval(counts);
      return [
        type,
        number(counts.episodes),
        percent(success),
        ...(once
          ? [counts.episodes === 0 ? "–" : `${(100 * low).toFixed(1)} – ${percent(high)}`]
          : []),
        ...(scored ? [number(100 * score, 1)] : []),
        number(meanSteps, 1),
        percent(invalid),
        number(counts.broken),
      ];
    }),
  );
  return [...lines, ...attemptLines(tally), ...brokenLines(tally)];
}

/** The same numbers by name; unmeasured ones are omitted. */
export function evaluationJson(tally: Tally): Record<string, unknown> {
  const { tasks, solvedWithin, passAll } = tally.attempts;
  const once = solvedWithin.length < 2;
  return {
    ...countsJson(tally.all, once),
    ...(!once && { solvedWithin: solvedWithin.map((solved) => solved / tasks), passAll }),
    ...(tally.broken.size > 0 && { brokenBecause: Object.fromEntries(tally.broken) }),
    byType: Object.fromEntries([...tally.byType].map(([type, c]) => [type, countsJson(c, once)])),
  };
}

function countsJson(counts: Counts, once: boolean): Record<string, unknown> {
  const { success, meanReturn, meanSteps, invalid, score } = rates(counts);
  const numbers = { success, score, return: meanReturn, steps: meanSteps, invalid };
  return {
    episodes: counts.episodes,
    broken: counts.broken,
    ...(once && counts.episodes > 0 && { interval: successInterval(counts) }),
    // JSON has no NaN.
    ...Object.fromEntries(Object.entries(numbers).filter(([, value]) => Number.isFinite(value))),
  };
}
