/** The words that made-up tasks name files and fill lines with; none is part of another. */
import type { Random } from "@pawl/core/random.js";

const list = (text: string): readonly string[] => text.trim().split(/\s+/);

/** Names of files and folders. */
const NAMES = list(`
  anchor basket bridge candle castle cellar coffee copper corner cotton dragon engine fabric falcon
  feather forest garden ginger harbor hammer island jacket kettle ladder lantern marble meadow
  mirror museum needle orchard oyster paddle parcel pepper pillow planet pocket rabbit saddle
`);

/** Words that lines begin with, and that are put into them. */
const WORDS = list(`
  acorn badge beech bison brick cabin camel cedar chalk cider clove coral crane daisy delta dough
  ember fjord flute glove grape hazel heron honey ivory jelly koala lemon lilac linen lotus maple
  mango melon moose olive onion opera otter panda peach pearl plaza poppy quail raven robin satin
`);

/** Words that several lines share. */
export const TAGS = list("blue fresh green heavy large quiet");

/** Names and words, each given once. */
export interface Supplies {
  name(): string;
  word(): string;
  names(count: number): readonly string[];
  words(count: number): readonly string[];
  /** From `low` to `high`; no number is given twice. */
  number(low: number, high: number): number;
}

/** How many of the names and words tasks of the first level share, so that a small model meets each often. */
const FEW = { names: 16, words: 24 };

/** What a task names its things with. */
export function supplies(random: Random, difficulty: number): Supplies {
  const names = random.shuffle(difficulty > 1 ? [...NAMES] : NAMES.slice(0, FEW.names));
  const words = random.shuffle(difficulty > 1 ? [...WORDS] : WORDS.slice(0, FEW.words));
  const numbers = new Set<number>();
  const some = (one: () => string) => (count: number) => Array.from({ length: count }, one);
  const name = (): string => names.pop()!;
  const word = (): string => words.pop()!;
  return {
    name,
    word,
    names: some(name),
    words: some(word),
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
