import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { worldTexts } from "../../../../tests/helpers/small-world.js";
import { dose } from "../dose-testing.js";
import { createTokenizer, type Tokenizer } from "./tokenizer.js";
import { buildTokenizer } from "./tokenizer-builder.js";
import { type TextPart, tokenStarts } from "./whole-text.js";

const built = buildTokenizer(worldTexts, { chat: true });
const template = (text: string): TextPart => ({ text, special: true });
const world = (text: string): TextPart => ({ text, special: false });

/** A vocabulary of single characters and some joins, as `tokenizer.json` has it. */
function bytePairs(
  parts: Record<string, unknown>,
  tokens: readonly string[],
  added: Record<string, unknown> = {},
): Tokenizer {
  const characters = [...new Set(tokens.join(""))];
  const vocab = Object.fromEntries(
    ["<unk>", "<end>", ...new Set([...characters, ...tokens])].map((token, id) => [token, id]),
  );
  // A join is made of what it is without its last character, and that.
  const merges = tokens.map((token) => [token.slice(0, -1), token.slice(-1)]);
  return createTokenizer({
    tokenizer: JSON.stringify({
      normalizer: null,
      pre_tokenizer: null,
      decoder: null,
      ...parts,
      added_tokens: [{ id: 1, content: "<end>", special: true, ...added }],
      model: { type: "BPE", unk_token: "<unk>", vocab, merges, byte_fallback: false },
    }),
  });
}

/** Blanks are ▁, and one is put before the text. */
const blanks = {
  normalizer: {
    type: "Sequence",
    normalizers: [
      { type: "Prepend", prepend: "▁" },
      { type: "Replace", pattern: { String: " " }, content: "▁" },
    ],
  },
};

describe("parts of a text", () => {
  it("have the ids of the whole, and a token across two belongs to the one it begins in", () => {
    const text = "You see plum 2.\n\nA kitchen.";
    for (let cut = 1; cut <= text.length; cut++) {
      const parts = [world(text.slice(0, cut)), template(text.slice(cut))];
      const { ids, ends } = built.encodeParts(parts);
      expect(ids).toEqual(built.encode(text));
      const first = built.decode(ids.slice(0, ends[0]));
      expect(first.length).toBeGreaterThanOrEqual(cut);
      expect(built.decode(ids.slice(0, ends[0]! - 1)).length).toBeLessThan(cut);
      expect(ends[1]).toBe(ids.length);
    }
  });

  it("are encoded one by one on request", () => {
    const parts = [world("You se"), template("e plum 2.")];
    expect(built.encodeParts(parts, { apart: true }).ids).toEqual([
      ...built.encode("You se"),
      ...built.encode("e plum 2."),
    ]);
    expect(built.encodeParts(parts).ids).toEqual(built.encode("You see plum 2."));
  });

  it("keep their bytes, whatever stands in them", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" })), (texts) => {
        const { ids, ends } = built.encodeParts(texts.map(world));
        expect(built.decode(ids)).toBe(texts.join(""));
        expect(ends).toEqual([...ends].sort((a, b) => a - b));
        expect(ends.at(-1) ?? 0).toBe(ids.length);
      }),
    );
  });

  it("write no special token unless they may, alone or with their neighbours", () => {
    const piece = fc.oneof(
      fc.constantFrom("<|end|>", "<|", "<|end", "end|>", "|>", "<", "<|assistant|>", "<|<|end|>"),
      fc.string(),
    );
    const parts = fc.array(fc.oneof(piece.map(world), fc.constant(template("<|user|>"))));
    for (const tokenizer of [built, unsplit])
      fc.assert(
        fc.property(parts, (all) => {
          const { ids } = tokenizer.encodeParts(all);
          const special = ids.filter((id) => tokenizer.specialIds.has(id));
          const meant = all.filter((part) => part.special);
          expect(special).toEqual(meant.map(() => tokenizer.id("<|user|>")));
        }),
        { numRuns: dose(500) },
      );
  });

  it("do not end a template's token either", () => {
    const parts = [world("a <|us"), template("er|> b"), template("<|end|>"), world("|end|>")];
    for (const tokenizer of [built, unsplit]) {
      const { ids } = tokenizer.encodeParts(parts);
      expect(ids.filter((id) => tokenizer.specialIds.has(id))).toEqual([tokenizer.id("<|end|>")]);
      expect(tokenizer.decode(ids)).toBe("a <|user|> b<|end|>|end|>");
    }
  });
});

/** The same vocabulary in a file that is not split at words, as those of other makers. */
const unsplit = createTokenizer({
  ...built.files,
  tokenizer: JSON.stringify({
    ...JSON.parse(built.files.tokenizer),
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, use_regex: true },
  }),
});

describe("a tokenizer that puts a blank before a text", () => {
  const tokenizer = bytePairs(blanks, ["▁a", "▁ab", "b.", "▁c"]);

  it("puts none between parts, and none is counted", () => {
    const { ids, ends } = tokenizer.encodeParts([world("ab"), template(" c"), world("b.")]);
    expect(ids).toEqual(tokenizer.encode("ab cb."));
    expect(ids.map((id) => tokenizer.decode([id]))).toEqual(["▁ab", "▁c", "b."]);
    expect(ends).toEqual([1, 2, 3]);
  });

  it("reads what follows a special token as it stands there", () => {
    const end = tokenizer.id("<end>")!;
    const whole = tokenizer.encodeParts([template("a<end>"), world("c")]);
    expect(whole.ids.at(-2)).toBe(end);
    const after = tokenizer.encodeParts([world("c")], { after: end });
    expect(after.ids).toEqual(whole.ids.slice(-1));
    expect(after.ends).toEqual([1]);
  });
});

describe("what a tokenizer does to a text", () => {
  it("may take white space beside a special token", () => {
    const tokenizer = bytePairs({}, ["a", "b", "\n"], { rstrip: true, lstrip: true });
    const { ids, ends } = tokenizer.encodeParts([world("a\n"), template("<end>"), world("\nb")]);
    expect(ids.map((id) => tokenizer.decode([id]))).toEqual(["a", "<end>", "b"]);
    expect(ends).toEqual([1, 2, 3]);
  });

  it("may compose characters", () => {
    const tokenizer = bytePairs({ normalizer: { type: "NFC" } }, ["é", "a", "b"]);
    const { ids, ends } = tokenizer.encodeParts([world("ae\u0301"), template("b")]);
    expect(ids).toEqual(tokenizer.encode("aéb"));
    expect(ends).toEqual([2, 3]);
  });

  it("may not be found again: then parts are encoded one by one", () => {
    const tokenizer = bytePairs({ normalizer: { type: "Lowercase" } }, ["ab", "a", "b"]);
    const { ids, ends } = tokenizer.encodeParts([world("A"), template("B")]);
    expect(ids.map((id) => tokenizer.decode([id]))).toEqual(["a", "b"]);
    expect(ends).toEqual([1, 2]);
    expect(tokenizer.encodeParts([world("AB")]).ids).toEqual(tokenizer.encode("ab"));
  });
});

describe("where tokens begin", () => {
  const bytes = (text: string) => Buffer.from(text);
  const starts = (text: string, tokens: readonly string[]) =>
    tokenStarts(bytes(text), tokens.map(bytes));

  it("is counted in bytes, and is unknown if they do not spell the text", () => {
    expect(starts("äb", ["ä", "b"])).toEqual([0, 2]);
    expect(starts("ab", ["a", "c"])).toBeUndefined();
    expect(starts("ab", ["a"])).toBeUndefined();
    expect(starts("a", ["a", "b"])).toBeUndefined();
    expect(tokenStarts(bytes("a"), [undefined])).toBeUndefined();
    expect(starts("a  b ", ["a", "b"])).toEqual([0, 3]);
  });
});
