/**
 * The verdict in a judge's answer: yes, no, or neither.
 *
 * A yes or no counts only as an answer, not inside a sentence ("there is no difference"). It is
 * looked for in this order: a labelled verdict ("Verdict: NO"), a line of its own, then the
 * answer's first and last words. If two of the same kind contradict each other, there is no
 * verdict.
 */

/** What a judge is asked to end with, so that the verdict can be found. */
export const VERDICT_REQUEST =
  "End your answer with a line of its own: the word VERDICT, a colon, and YES or NO.";

/** Not both at once, which repeats the question and is not an answer. */
const single = "(?!\\s*(?:/|or\\b|and\\b)\\s*(?:yes|no)\\b)";
/** `Verdict: **no**`, `the answer is yes`, `{"answer": "no"}`, `\boxed{yes}`. */
const labelled = new RegExp(
  `\\b(?:verdict|answer|judge?ment|conclusion|decision|boxed)\\b[^a-z0-9\\n]*(?:is\\b[^a-z0-9\\n]*)?\\b(yes|no)\\b${single}`,
  "gi",
);
const alone = /^[^a-z0-9\n]*(yes|no)[^a-z0-9\n]*$/gim;
/**
 * "No" before another word is rarely an answer ("no difference"), unless a sentence starts there.
 */
const first = new RegExp(
  `^[^a-z0-9]*(?:(yes)\\b${single}|(no)\\b${single}(?!\\.?\\s*\\d)(?=[^a-z0-9\\s]|\\s*$|\\s+(?:it|the|they|this|that|these|there|because|since)\\b))`,
  "i",
);
const last =
  /(?:^|[.!?:,;—–-]|\b(?:so|therefore|thus|hence|is|say))[^a-z0-9]*\b(yes|no)[^a-z0-9]*$/i;

/** Whether the answer says yes; undefined if it says neither, or both. */
export function verdictOf(answer: string): boolean | undefined {
  const said = answer.split("</think>").at(-1)!;
  // Truncated reasoning has not reached a verdict.
  if (said.includes("<think>")) return undefined;
  const words = (pattern: RegExp) => [...said.matchAll(pattern)].map((match) => match[1]!);
  const ends = [first, last].flatMap((pattern) => pattern.exec(said)?.slice(1) ?? []);
  for (const found of [words(labelled), words(alone), ends.filter((word) => word !== undefined)]) {
    const distinct = new Set(found.map((word) => word.toLowerCase()));
    if (distinct.size > 1) return undefined;
    if (distinct.size === 1) return distinct.has("yes");
  }
  return undefined;
}
