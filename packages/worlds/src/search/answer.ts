/** How answers are compared: exact match and F1 as in SQuAD, maximised over the correct answers. */

const punctuation = /[!-/:-@[-`{-~]/g;
// Not \b, which treats accented letters as the end of a word.
const articles = /(?<![\p{L}\p{N}_])(?:an?|the)(?![\p{L}\p{N}_])/gu;

/** An answer without capitals, punctuation, articles and extra white space. */
export function normaliseAnswer(text: string): string {
  return words(text).join(" ");
}

/** Whether the answer is one of the correct ones. */
export function exactMatch(answer: string, right: readonly string[]): boolean {
  const own = normaliseAnswer(answer);
  return right.some((one) => normaliseAnswer(one) === own);
}

/**
 * The harmonic mean of precision and recall of the answer's words, for the closest correct answer.
 */
export function f1Score(answer: string, right: readonly string[]): number {
  const own = words(answer);
  return Math.max(0, ...right.map((one) => f1(own, words(one))));
}

function words(text: string): readonly string[] {
  const bare = text.toLowerCase().replace(punctuation, "").replace(articles, " ");
  return bare.split(/\s+/).filter(Boolean);
}

function f1(own: readonly string[], right: readonly string[]): number {
  if (own.length === 0 || right.length === 0) return own.length === right.length ? 1 : 0;
  const left = new Map<string, number>();
  for (const word of right) left.set(word, (left.get(word) ?? 0) + 1);
  let common = 0;
  for (const word of own) {
    const times = left.get(word) ?? 0;
    if (times === 0) continue;
    common++;
    left.set(word, times - 1);
  }
  return (2 * common) / (own.length + right.length);
}
