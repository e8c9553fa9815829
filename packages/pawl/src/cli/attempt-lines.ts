/** How many tasks were solved within one attempt, two, and so on, and in all of so many. */
import type { Tally } from "@pawl/core/rollout/tally.js";
import { successInterval } from "@pawl/core/success-interval.js";
import { percent } from "./format.js";

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
