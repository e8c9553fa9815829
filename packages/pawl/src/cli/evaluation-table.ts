/** The results of an evaluation, for people and for programs. */
import {
  type Counts,
  meanOfTypes,
  rates,
  type Tally,
  trainedShare,
} from "@pawl/core/rollout/tally.js";
import { successInterval } from "@pawl/core/success-interval.js";
import { number, percent, table } from "./format.js";

/** More are summed up: a thousand reasons are one problem. */
const SHOWN = 5;
const LONGEST = 300;

/** One line per reason, the most frequent first; none if nothing broke. */
export function brokenLines({ broken }: Pick<Tally, "broken">): readonly string[] {
  const reasons = [...broken].sort(([, a], [, b]) => b - a);
  if (reasons.length === 0) return [];
  const rest = reasons.slice(SHOWN).reduce((sum, [, count]) => sum + count, 0);
  return [
    "",
    "broken episodes, by reason (they count in no rate):",
    ...reasons.slice(0, SHOWN).map(([reason, count]) => `  ${count} × ${shorten(reason)}`),
    ...(rest > 0 ? [`  ${rest} × other reasons`] : []),
  ];
}

function shorten(reason: string): string {
  return reason.length <= LONGEST ? reason : `${reason.slice(0, LONGEST)}…`;
}

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
    ...(tally.tokens.sampled > 0 && {
      tokens: { sampled: tally.tokens.sampled, trained: trainedShare(tally.tokens) },
    }),
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

/** Lines for people; none if every task was attempted once. */
export function attemptLines({ attempts }: Tally): readonly string[] {
  const { tasks, solvedWithin, passAll } = attempts;
  if (solvedWithin.length < 2) return [];
  const numbers = solvedWithin.map((_, at) => at + 1).join(", ");
  const shares = solvedWithin.map((solved) => percent(solved / tasks)).join(", ");
  const [low, high] = successInterval({ episodes: tasks, successes: solvedWithin.at(-1)! });
  const interval = `${(100 * low).toFixed(1)} – ${percent(high)}`;
  return [
    `solved within ${numbers} attempts: ${shares} of ${tasks} tasks (95 % interval of the last: ${interval})`,
    `solved in all of ${passAll.map((_, at) => at + 1).join(", ")} attempts (pass^k): ${passAll.map(percent).join(", ")}`,
  ];
}

/** What was sampled for agents, and the share of it that can be learnt from. */
export function tokensText({ tokens }: Tally, sequences?: number): string | undefined {
  const { sampled, untrained } = tokens;
  if (sampled === 0) return undefined;
  const why = [...untrained].map(([reason, count]) => `${count} ${reason}`).join(", ");
  const where = sequences === undefined ? "" : ` in ${sequences} sequences`;
  return `${sampled} sampled${where}, ${percent(trainedShare(tokens))} to be trained${why === "" ? "" : ` (not: ${why})`}`;
}

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
