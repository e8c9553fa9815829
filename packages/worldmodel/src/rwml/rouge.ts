/**
 * ROUGE-L (Lin 2004): F1 of the longest common subsequence of words, for states that are data more than prose.
 *
 *   P = LCS / |predicted|,   R = LCS / |real|,   F = 2·P·R / (P + R)
 */

/** ROUGE-L of two texts, in [0, 1]; words are runs of letters and digits, in lower case. */
export function rougeL(predicted: string, real: string): number {
  const a = wordsOf(predicted);
  const b = wordsOf(real);
  if (a.length === 0 || b.length === 0) return a.length === b.length ? 1 : 0;
  return (2 * longestCommon(a, b)) / (a.length + b.length);
}

const wordsOf = (text: string): readonly string[] =>
  text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** The length of the longest common subsequence, row by row. */
function longestCommon(a: readonly string[], b: readonly string[]): number {
  let row = new Uint32Array(b.length + 1);
  for (const word of a) {
    const next = new Uint32Array(b.length + 1);
    for (let j = 0; j < b.length; j++) {
      next[j + 1] = word === b[j] ? row[j]! + 1 : Math.max(row[j + 1]!, next[j]!);
    }
    row = next;
  }
  return row[b.length]!;
}
