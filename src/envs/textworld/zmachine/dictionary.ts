/** Splits a line into words and looks them up in a dictionary of the story. */
import { type Story, storyFault } from "./story.js";
import { encodeWord, WORD_BYTES } from "./text.js";

/** A dictionary, ready to look words up. */
export interface Dictionary {
  /** Character codes that are words of their own. */
  readonly separators: ReadonlySet<number>;
  /** Addresses of words by their encoded bytes. */
  readonly words: ReadonlyMap<string, number>;
}

/** Reads the dictionary at an address. */
export function readDictionary(story: Story, memory: Uint8Array, address: number): Dictionary {
  const separatorCount = memory[address]!;
  const separators = new Set(memory.subarray(address + 1, address + 1 + separatorCount));
  const head = address + 1 + separatorCount;
  const length = memory[head]!;
  const declared = ((memory[head + 1]! << 24) | (memory[head + 2]! << 16)) >> 16;
  const count = Math.abs(declared);
  const first = head + 3;
  if (length < WORD_BYTES || first + count * length > story.size)
    throw storyFault(
      story,
      address,
      `a dictionary of ${count} words of ${length} bytes does not fit`,
    );
  const words = new Map<string, number>();
  // Backwards, so that of two equal words the first counts.
  for (let index = count - 1; index >= 0; index--) {
    const at = first + index * length;
    words.set(key(memory.subarray(at, at + WORD_BYTES)), at);
  }
  return { separators, words };
}

function key(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

const SPACE = 32;
const TEXT_START = 2;

/**
 * Splits the line in a text buffer and writes the words into a parse buffer, each with its address
 * in the dictionary. With `known`, entries of unknown words are left as they are.
 */
export function tokenise(
  dictionary: Dictionary,
  memory: Uint8Array,
  text: number,
  parse: number,
  writeByte: (address: number, value: number) => void,
  known = false,
): void {
  const most = memory[parse]!;
  const end = text + TEXT_START + memory[text + 1]!;
  let count = 0;
  const add = (from: number, to: number): void => {
    if (count >= most) return;
    const entry = parse + 2 + 4 * count++;
    const address = dictionary.words.get(key(encodeWord(memory.subarray(from, to)))) ?? 0;
    if (known && address === 0) return;
    writeByte(entry, address >> 8);
    writeByte(entry + 1, address & 0xff);
    writeByte(entry + 2, to - from);
    writeByte(entry + 3, from - text);
  };
  let start = -1;
  for (let at = text + TEXT_START; at <= end; at++) {
    const code = at < end ? memory[at]! : SPACE;
    const separator = dictionary.separators.has(code);
    if (code !== SPACE && !separator) {
      if (start < 0) start = at;
      continue;
    }
    if (start >= 0) add(start, at);
    start = -1;
    if (separator && at < end) add(at, at + 1);
  }
  writeByte(parse + 1, count);
}
