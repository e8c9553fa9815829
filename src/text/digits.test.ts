import { expect, it } from "vitest";
import { withUnicodeDigits } from "./digits.js";

it("Digits becomes a Split at every numeric character, inside sequences too", () => {
  const split = (Regex: string) => ({
    type: "Split",
    pattern: { Regex },
    behavior: "Isolated",
    invert: false,
  });
  const other = { type: "ByteLevel", use_regex: true };
  expect(withUnicodeDigits({ type: "Digits", individual_digits: true })).toEqual(split("\\p{N}"));
  expect(withUnicodeDigits({ type: "Digits" })).toEqual(split("\\p{N}+"));
  expect(
    withUnicodeDigits({ type: "Sequence", pretokenizers: [{ type: "Digits" }, other] }),
  ).toEqual({ type: "Sequence", pretokenizers: [split("\\p{N}+"), other] });
  expect(withUnicodeDigits(other)).toBe(other);
  expect(withUnicodeDigits(null)).toBeNull();
});
