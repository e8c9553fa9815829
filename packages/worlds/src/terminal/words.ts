/** The words of made-up tasks; none is part of another. */
import type { Random } from "@pawl/core/random.js";

const list = (text: string): readonly string[] => text.trim().split(/\s+/);

/** What files and folders are called, and what their lines say. */
const WORDS = list(`
  acorn anchor badge basket beech bison brick bridge cabin camel candle castle cedar cellar chalk
  cider clove coffee copper coral corner cotton crane daisy delta dough dragon ember engine fabric
  falcon feather fjord flute forest garden ginger glove grape hammer harbor hazel heron honey island
  ivory jacket jelly kettle koala ladder lantern lemon lilac linen lotus mango maple marble meadow
  melon mirror moose museum needle olive onion opera orchard otter oyster paddle panda parcel peach
  pearl pepper pillow planet plaza pocket poppy quail rabbit raven robin saddle satin
`);

/** Words that several lines share. */
export const TAGS = list("blue fresh green heavy large quiet");

/** Words and numbers, each given once. */
interface Supplies {
  word(): string;
  words(count: number): readonly string[];
  /** From `low` to `high`; no number is given twice. */
  number(low: number, high: number): number;
}

/** How many of the words tasks of the first level share, so that a small model meets each often. */
const FEW = 32;

/** What a task names its things with. */
export function supplies(random: Random, difficulty: number): Supplies {
  const words = random.shuffle(difficulty > 1 ? [...WORDS] : WORDS.slice(0, FEW));
  const numbers = new Set<number>();
  const word = (): string => words.pop()!;
  return {
    word,
    words: (count) => Array.from({ length: count }, word),
    number(low, high) {
      for (;;) {
        const number = low + random.int(high - low + 1);
        if (numbers.has(number)) continue;
        numbers.add(number);
        return number;
      }
    },
  };
}

/** A file's text of these lines. */
export const textOf = (lines: readonly (string | number)[]): string =>
  lines.map((line) => `${line}\n`).join("");
