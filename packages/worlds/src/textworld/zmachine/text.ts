/** Text of the Z-machine: five-bit characters in words of three, in both directions. */
import { type Story, storyFault } from "./story.js";

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

const ALPHABETS = [
  "abcdefghijklmnopqrstuvwxyz",
  "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
  " \n0123456789.,!?_#'\"/\\-:()",
] as const;
/** Unicode of the character codes 155 to 223 (table 1 of the standard). */
const EXTRA = "äöüÄÖÜß»«ëïÿËÏáéíóúýÁÉÍÓÚÝàèìòùÀÈÌÒÙâêîôûÂÊÎÔÛåÅøØãñõÃÑÕæÆçÇþðÞÐ£œŒ¡¿";
const FIRST_EXTRA = 155;
/** A text that never ends would otherwise be read to the end of the file. */
const LONGEST = 65_536;
const WORD_CHARACTERS = 9;
/** Bytes of an encoded word of the dictionary. */
export const WORD_BYTES = 6;

/** A character code as text; codes that mean nothing print nothing. */
export function character(code: number): string {
  if (code >= 32 && code <= 126) return String.fromCharCode(code);
  if (code === 13) return "\n";
  if (code < FIRST_EXTRA) return "";
  return EXTRA[code - FIRST_EXTRA] ?? "";
}

/** A decoded text, and the address after it. */
export interface Decoded {
  readonly text: string;
  readonly end: number;
}

/** Decodes the text at an address; `memory` is the story's, as it is now. */
export function decodeText(story: Story, memory: Uint8Array, address: number): Decoded {
  return decode(story, memory, address, true);
}

function decode(story: Story, memory: Uint8Array, start: number, abbreviations: boolean): Decoded {
  let text = "";
  let address = start;
  let shift = 0;
  // What the next character belongs to: an abbreviation's set, or the halves of a code.
  let set = 0;
  let half = 0;
  let high = 0;
  for (let word = 0; word < 0x8000; address += 2) {
    if (address + 2 > story.size || address - start > LONGEST)
      throw storyFault(story, start, "a text runs past the end of memory");
    word = (memory[address]! << 8) | memory[address + 1]!;
    for (let bits = 10; bits >= 0; bits -= 5) {
      const unit = (word >> bits) & 31;
      if (set > 0) {
        text += abbreviation(story, memory, 32 * (set - 1) + unit);
        set = 0;
      } else if (half === 1) {
        high = unit;
        half = 2;
      } else if (half === 2) {
        text += character((high << 5) | unit);
        half = 0;
      } else if (unit >= 6) {
        if (shift === 2 && unit === 6) half = 1;
        else text += ALPHABETS[shift]![unit - 6];
        shift = 0;
      } else if (unit === 0) {
        text += " ";
        shift = 0;
      } else if (unit >= 4) shift = unit - 3;
      else {
        if (!abbreviations) throw storyFault(story, start, "an abbreviation inside another");
        set = unit;
        shift = 0;
      }
    }
  }
  return { text, end: address };
}

function abbreviation(story: Story, memory: Uint8Array, number: number): string {
  const entry = story.abbreviations + 2 * number;
  if (entry + 2 > story.size) throw storyFault(story, entry, "no abbreviation is there");
  const address = 2 * ((memory[entry]! << 8) | memory[entry + 1]!);
  return decode(story, memory, address, false).text;
}

/** A word as the dictionary has it: the first nine characters, as three numbers in one text. */
export function encodeWord(codes: Iterable<number>): Uint8Array {
  const units: number[] = [];
  for (const code of codes) {
    if (units.length >= WORD_CHARACTERS) break;
    const text = String.fromCharCode(code);
    const small = ALPHABETS[0].indexOf(text);
    const sign = code > 32 && code < 127 ? ALPHABETS[2].indexOf(text, 2) : -1;
    if (small >= 0) units.push(6 + small);
    else if (sign >= 0) units.push(5, 6 + sign);
    else units.push(5, 6, (code >> 5) & 31, code & 31);
  }
  while (units.length < WORD_CHARACTERS) units.push(5);
  const bytes = new Uint8Array(WORD_BYTES);
  for (let at = 0; at < WORD_CHARACTERS; at += 3) {
    const last = at + 3 === WORD_CHARACTERS ? 0x8000 : 0;
    const word = (units[at]! << 10) | (units[at + 1]! << 5) | units[at + 2]! | last;
    const to = (at / 3) * 2;
    bytes[to] = word >> 8;
    bytes[to + 1] = word & 0xff;
  }
  return bytes;
}
