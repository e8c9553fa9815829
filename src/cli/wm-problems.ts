/** What was left out, in readable form. */
import type { Problems } from "../worldmodel/problems.js";
import { number } from "./format.js";

/** A line for each kind of problem. */
export function problemLines({ counts }: Problems): readonly string[] {
  return [...counts].map(([kind, count]) => `left out ${number(count)}: ${kind}`);
}
