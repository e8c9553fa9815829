/** Text of a world or a model, cut to what a page can show at once. */
import type { CutText } from "../report/views.js";

/** Characters that are sent of one text; "show more" asks for the rest, a piece at a time. */
const SHOWN = 4_000;

/** The beginning of a text, and how long it is. */
export function cutText(text: string, most = SHOWN): CutText {
  if (text.length <= most) return { text, length: text.length };
  // Half of a pair of surrogates is no character.
  const last = text.charCodeAt(most - 1);
  const end = last >= 0xd800 && last < 0xdc00 ? most - 1 : most;
  return { text: text.slice(0, end), length: text.length };
}
