/**
 * Regular expressions of a `tokenizer.json`. JavaScript's may take exponential time on a text that
 * is made for it, so a tokenizer with an expression that is not known here encodes and decodes within
 * a time limit, which costs about 50 µs for each text. The known ones are those of most models, and
 * take time in proportion to the text.
 */

import { z } from "zod";
import { withinTime } from "../processes/time-limit.js";
import { isRecord } from "./tool.js";
import { wordPattern } from "./words.js";

// Pre-tokenizers that the JavaScript library carries out otherwise than the native one, written as a
// `Split`, which is the same in both. `Digits` splits at every numeric character (½, Ⅷ, ١), not only
// at 0 to 9, and what is white space to `ByteLevel` is what Unicode says: U+0085, and not U+FEFF.

const digits = z.looseObject({
  type: z.literal("Digits"),
  individual_digits: z.boolean().default(false),
});
const byteLevel = z.looseObject({
  type: z.literal("ByteLevel"),
  // It goes before the text is split.
  add_prefix_space: z.literal(false),
  use_regex: z.literal(true).default(true),
});
const sequence = z.looseObject({
  type: z.literal("Sequence"),
  pretokenizers: z.array(z.unknown()),
});

/** GPT-2's words. */
const wordsOfBytes =
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

const split = (Regex: string) => ({
  type: "Split",
  pattern: { Regex },
  behavior: "Isolated",
  invert: false,
});

/** The pre-tokenizer as the native library carries it out. */
export function nativePreTokenizer(preTokenizer: unknown): unknown {
  const several = sequence.safeParse(preTokenizer).data;
  if (several !== undefined)
    return { ...several, pretokenizers: several.pretokenizers.map(nativePreTokenizer) };
  const number = digits.safeParse(preTokenizer).data;
  if (number !== undefined) return split(number.individual_digits ? "\\p{N}" : "\\p{N}+");
  const bytes = byteLevel.safeParse(preTokenizer).data;
  if (bytes === undefined) return preTokenizer;
  const pretokenizers = [split(wordsOfBytes), { ...bytes, use_regex: false }];
  return { type: "Sequence", pretokenizers };
}

/** The expression of Llama 3 and others, with the given form of numbers. */
export const wordRule = (numbers: string): string =>
  `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${numbers}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;

const KNOWN: ReadonlySet<string> = new Set([
  wordPattern,
  wordRule("\\p{N}"),
  wordRule("\\p{N}{1,3}"),
  // GPT-2, spelt out; parts of DeepSeek's; SentencePiece models' runs of blanks.
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
  "\\p{N}{1,3}",
  "\\p{N}",
  "\\p{N}+",
  "[一-龥぀-ゟ゠-ヿ]+",
  "[\r\n]",
  " {2,}",
  "\\s+",
]);
/** A plain text to look for: longer ones can take quadratic time. */
const LONGEST_PLAIN = 64;

/** Whether parts of a tokenizer hold an expression that is not known. */
export function hasForeignPattern(part: unknown): boolean {
  if (Array.isArray(part)) return part.some(hasForeignPattern);
  if (!isRecord(part)) return false;
  return Object.entries(part).some(([name, value]) => {
    if (name === "Regex") return typeof value !== "string" || !KNOWN.has(value);
    if (name === "String") return typeof value !== "string" || value.length > LONGEST_PLAIN;
    return hasForeignPattern(value);
  });
}

/** Three seconds, and a hundred times as long as a usual tokenizer takes for the text. */
export function withinPatternTime<T>(length: number, compute: () => T, late: () => Error): T {
  return withinTime(3000 + Math.ceil(length / 10), compute, late);
}
