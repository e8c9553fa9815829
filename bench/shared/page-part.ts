/** The part of a results page that a command writes. */
import { readFileSync, writeFileSync } from "node:fs";

/** Puts a part, which begins and ends with the marks, in the place of the page's own. */
export function writePart(page: string, [begin, end]: readonly [string, string], part: string) {
  const text = readFileSync(page, "utf8");
  const from = text.indexOf(begin);
  const to = text.indexOf(end, from);
  if (from < 0 || to < 0) throw new Error(`${page}: expected ${begin} … ${end}`);
  writeFileSync(page, `${text.slice(0, from)}${part}${text.slice(to + end.length)}`);
}
