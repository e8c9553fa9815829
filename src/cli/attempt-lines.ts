/** How many tasks were solved within one attempt, two, and so on. */
import type { Tally } from "../rollout/tally.js";
import { successInterval } from "../train/evaluate.js";
import { percent } from "./format.js";

/** A line for people; none if every task was attempted once. */
export function attemptLines({ attempts: { tasks, solvedWithin } }: Tally): readonly string[] {
  if (solvedWithin.length < 2) return [];
  const numbers = solvedWithin.map((_, at) => at + 1).join(", ");
  const shares = solvedWithin.map((solved) => percent(solved / tasks)).join(", ");
  const [low, high] = successInterval({ episodes: tasks, successes: solvedWithin.at(-1)! });
  const interval = `${(100 * low).toFixed(1)} – ${percent(high)}`;
  return [
    `solved within ${numbers} attempts: ${shares} of ${tasks} tasks (95 % interval of the last: ${interval})`,
  ];
}
