/**
 * The pre-tokenizer `Digits` splits at every numeric character in the native library (½, Ⅷ, ١), but
 * only at 0 to 9 in the JavaScript one. Written as a `Split`, it is the same in both.
 */
import { z } from "zod";

const digits = z.looseObject({
  type: z.literal("Digits"),
  individual_digits: z.boolean().default(false),
});
const sequence = z.looseObject({
  type: z.literal("Sequence"),
  pretokenizers: z.array(z.unknown()),
});

/** The pre-tokenizer with `Digits` as an equivalent `Split`. */
export function withUnicodeDigits(preTokenizer: unknown): unknown {
  const several = sequence.safeParse(preTokenizer).data;
  if (several !== undefined)
    return { ...several, pretokenizers: several.pretokenizers.map(withUnicodeDigits) };
  const one = digits.safeParse(preTokenizer).data;
  if (one === undefined) return preTokenizer;
  const pattern = { Regex: one.individual_digits ? "\\p{N}" : "\\p{N}+" };
  return { type: "Split", pattern, behavior: "Isolated", invert: false };
}
