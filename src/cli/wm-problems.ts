/** What was left out of a whole, as people read it. */
import type { Problems } from "../worldmodel/problems.js";
import { number } from "./format.js";

/** A line for each kind of problem; none where there was none. */
export function problemLines({ counts }: Problems): readonly string[] {
  return [...counts].map(([kind, count]) => `left out ${number(count)}: ${kind}`);
}
