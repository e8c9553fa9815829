/** `pawl eval --compare A B`: whether two evaluations of the same tasks differ. */

import { ConfigError } from "@pawl/core/config/config-error.js";
import { z } from "zod";
import { readCard } from "../evaluation/card-file.js";
import { type Comparison, compareCards } from "../evaluation/compare.js";
import { shortHash } from "../evaluation/task-list.js";
import { exitCodes } from "./command.js";
import { number, percent, table } from "./format.js";
import { type Io, print, warn } from "./io.js";

/** The settings of a comparison. */
export const compareOptions = z.strictObject({
  compare: z
    .array(z.string())
    .optional()
    .describe("play nothing; compare two evaluations, A and B: run folders or cards"),
  json: z.boolean().default(false).describe("print the results as one line of JSON"),
});

/** Compares the evaluations and says what can be said. */
export function compareEvaluations(paths: readonly string[], json: boolean, io: Io): number {
  const [a, b] = paths;
  if (a === undefined || b === undefined || paths.length > 2)
    throw new ConfigError(
      `--compare: expected two evaluations, as in pawl eval --compare runs/A runs/B; got ${paths.length}`,
    );
  const [first, second] = [readCard(a), readCard(b)];
  const compared = compareCards(first, second);
  if (json) {
    print(io, JSON.stringify({ a, b, taskList: first.tasks, ...compared }));
    return exitCodes.done;
  }
  for (const caveat of compared.caveats)
    warn(io, `the evaluations differ in more than the player: ${caveat}`);
  const { name, sha256 } = first.tasks;
  print(io, `${name}, sha256 ${shortHash(sha256)}…`);
  print(io, `A ${a}: ${first.player}\nB ${b}: ${second.player}\n`);
  const rows = [
    ...Object.entries(compared.byType),
    ["all", { tasks: compared.tasks, success: compared.success }] as const,
  ].map(([type, { tasks, success }]) => [
    type,
    number(tasks),
    percent(success[0]),
    percent(success[1]),
    points(success[1] - success[0]),
  ]);
  for (const line of table(["task type", "tasks", "A", "B", "B − A"], rows)) print(io, line);
  print(io, `\n${verdictText(compared)}`);
  return exitCodes.done;
}

function verdictText(compared: Comparison): string {
  const { difference, interval, better, worse, p, tasks, leftOut } = compared;
  const [low, high] = interval.map(points);
  const said = {
    better: "B is better than A",
    worse: "B is worse than A",
    undecided: "a difference between A and B is not shown",
  }[compared.verdict];
  return [
    `${said}: ${points(difference)} points (95 % interval ${low} to ${high}), p = ${p < 0.001 ? p.toExponential(1) : p.toFixed(3)}.`,
    `B did better on ${better} and worse on ${worse} of ${tasks} tasks.`,
    `Test: ${compared.test}. Interval: ${compared.method}.`,
    ...(leftOut > 0 ? [`${leftOut} tasks broke in A or B and are left out.`] : []),
  ].join("\n");
}

/** A difference of rates in percentage points, with its sign. */
function points(difference: number): string {
  const value = (100 * difference).toFixed(1);
  return difference > 0 ? `+${value}` : value.replace("-", "−");
}
