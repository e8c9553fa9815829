import { type Counts, meanOfTypes, rates, type Tally } from "@pawl/core/rollout/tally.js";
import { attemptLines } from "./attempt-lines.js";
import { brokenLines } from "./broken-lines.js";
import { number, percent, table } from "./format.js";

/** Results by task type and overall, as a table. */
export function tallyTable(tally: Tally): string[] {
  const types = [...tally.byType].sort(([a], [b]) => a.localeCompare(b));
  const all: [string, Counts][] = [...types, ["all", tally.all]];
  const scored = tally.all.scored > 0;
  const header = [
    "task type",
    "episodes",
    "success",
    ...(scored ? ["score"] : []),
    "return",
    "steps",
    "invalid",
    "broken",
  ];
  const rows = all.map(([type, counts]) => {
    const { success, meanReturn, meanSteps, invalid, score } = rates(counts);
    return [
      type,
      number(counts.episodes),
      percent(success),
      ...(scored ? [number(score, 3)] : []),
      number(meanReturn, 2),
      number(meanSteps, 1),
      percent(invalid),
      number(counts.broken),
    ];
  });
  if (types.length > 1) {
    const { success, score } = meanOfTypes(tally);
    const blank = rows[0]!.slice(scored ? 4 : 3).map(() => "");
    rows.push([
      "mean of types",
      "",
      percent(success),
      ...(scored ? [number(score, 3)] : []),
      ...blank,
    ]);
  }
  return [...table(header, rows), ...attemptLines(tally), ...brokenLines(tally)];
}
