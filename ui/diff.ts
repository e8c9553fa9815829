/** What two texts have in common, word by word: the longest common subsequence. */

/** A part of a text; `same` if the other text has it too. */
export interface Part {
  readonly text: string;
  readonly same: boolean;
}

/** Beyond this many words in both, only beginning and end are compared: the table would be too large. */
const MOST_WORDS = 1500;

/** The parts of both texts. */
export function diffWords(
  left: string,
  right: string,
): readonly [readonly Part[], readonly Part[]] {
  const [a, b] = [wordsOf(left), wordsOf(right)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end))
    end++;
  const [middleA, middleB] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const [sameA, sameB] = common(middleA, middleB);
  const mark = (words: readonly string[], middle: readonly boolean[]): readonly Part[] =>
    joined(
      words.map((text, i) => ({
        text,
        same: i < start || i >= words.length - end || middle[i - start] === true,
      })),
    );
  return [mark(a, sameA), mark(b, sameB)];
}

const wordsOf = (text: string): readonly string[] =>
  text.match(/\s+|[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu) ?? [];

function common(a: readonly string[], b: readonly string[]): readonly [boolean[], boolean[]] {
  const sameA = new Array<boolean>(a.length).fill(false);
  const sameB = new Array<boolean>(b.length).fill(false);
  if (a.length > MOST_WORDS || b.length > MOST_WORDS) return [sameA, sameB];
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        a[i] === b[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      sameA[i++] = true;
      sameB[j++] = true;
    } else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) i++;
    else j++;
  }
  return [sameA, sameB];
}

function joined(parts: readonly Part[]): readonly Part[] {
  const result: { text: string; same: boolean }[] = [];
  for (const { text, same } of parts) {
    const last = result.at(-1);
    if (last?.same === same) last.text += text;
    else result.push({ text, same });
  }
  return result;
}
