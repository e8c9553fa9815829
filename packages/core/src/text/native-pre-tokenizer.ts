/**
 * Pre-tokenizers that the JavaScript library carries out otherwise than the native one, written as a
 * `Split`, which is the same in both. `Digits` splits at every numeric character (½, Ⅷ, ١), not only
 * at 0 to 9, and what is white space to `ByteLevel` is what Unicode says: U+0085, and not U+FEFF.
 */
import { z } from "zod";

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
