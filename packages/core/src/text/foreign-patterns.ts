/**
 * Regular expressions of a `tokenizer.json`. JavaScript's may take exponential time on a text that
 * is made for it, so a tokenizer with an expression that is not known here encodes and decodes within
 * a time limit, which costs about 50 µs for each text. The known ones are those of most models, and
 * take time in proportion to the text.
 */
import { withinTime } from "../processes/time-limit.js";
import { isRecord } from "./tool.js";
import { wordPattern } from "./words.js";

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
