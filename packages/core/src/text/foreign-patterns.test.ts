import { expect, it } from "vitest";
import { nativePreTokenizer } from "./foreign-patterns.js";
import { createTokenizer } from "./tokenizer.js";
import { buildTokenizer } from "./tokenizer-builder.js";

const split = (Regex: string) => ({
  type: "Split",
  pattern: { Regex },
  behavior: "Isolated",
  invert: false,
});

it("Digits becomes a Split at every numeric character, inside sequences too", () => {
  const other = { type: "Metaspace" };
  expect(nativePreTokenizer({ type: "Digits", individual_digits: true })).toEqual(split("\\p{N}"));
  expect(nativePreTokenizer({ type: "Digits" })).toEqual(split("\\p{N}+"));
  expect(
    nativePreTokenizer({ type: "Sequence", pretokenizers: [{ type: "Digits" }, other] }),
  ).toEqual({ type: "Sequence", pretokenizers: [split("\\p{N}+"), other] });
  expect(nativePreTokenizer(other)).toBe(other);
  expect(nativePreTokenizer(null)).toBeNull();
});

it("ByteLevel becomes a Split at Unicode's white space, unless a blank is put before the text", () => {
  const prefixed = { type: "ByteLevel", add_prefix_space: true };
  expect(nativePreTokenizer(prefixed)).toBe(prefixed);
  const bare = { type: "ByteLevel", add_prefix_space: false, use_regex: false };
  expect(nativePreTokenizer(bare)).toBe(bare);
  const bytes = { type: "ByteLevel", add_prefix_space: false };
  expect(nativePreTokenizer(bytes)).toMatchObject({
    pretokenizers: [{ type: "Split" }, { ...bytes, use_regex: false }],
  });
});

// Checked with the native library: a byte order mark is no white space, the next line (U+0085) is.
it("a byte order mark is no white space", () => {
  const built = buildTokenizer(["a\n\nb", "\n\n", "\n\n"]);
  const json = JSON.parse(built.files.tokenizer) as { pre_tokenizer: unknown };
  const pre_tokenizer = { type: "ByteLevel", add_prefix_space: false, use_regex: true };
  const gpt = createTokenizer({ tokenizer: JSON.stringify({ ...json, pre_tokenizer }) });
  for (const tokenizer of [built, gpt]) {
    const pieces = (text: string) => tokenizer.encode(text).map((id) => tokenizer.decode([id]));
    expect(pieces("a\n\nb")).toEqual(["a", "\n", "\n", "b"]);
    expect(pieces("\n\n")).toEqual(["\n\n"]);
    expect(pieces("\n\n\ufeffb").slice(0, 2)).toEqual(["\n", "\n"]);
    expect(pieces("\n\n\u0085").slice(0, 1)).toEqual(["\n\n"]);
  }
});
