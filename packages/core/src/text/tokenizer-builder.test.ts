import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { worldTexts } from "../../../../tests/helpers/small-world.js";
import { housePrompt } from "../envs/household/prompt.js";
import { promptStyle, promptText } from "./prompt.js";
import { markers } from "./prompt-compact.js";
import { createTokenizer } from "./tokenizer.js";
import { buildTokenizer, learnMerges } from "./tokenizer-builder.js";

const name = fc.stringMatching(/^[a-zäé]{1,9}$/);
const thing = fc
  .tuple(name, fc.option(fc.integer({ min: 0, max: 99 })))
  .map(([word, number]) => (number === null ? word : `${word} ${number}`));
const world = fc.array(fc.array(thing, { minLength: 1, maxLength: 8 }), {
  minLength: 1,
  maxLength: 8,
});

describe("a built tokenizer", () => {
  it("preserves any text", () => {
    const tokenizer = buildTokenizer(worldTexts);
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 60 }),
      fc.string({ unit: "grapheme", maxLength: 60 }),
      fc
        .array(fc.constantFrom(...worldTexts, ...Object.values(markers), " ", "\n"))
        .map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(text, fc.boolean(), (original, plain) => {
        expect(tokenizer.decode(tokenizer.encode(original, { plain }))).toBe(original);
      }),
    );
  });

  it("encodes word by word what the library encodes as a whole", () => {
    const tokenizer = buildTokenizer(worldTexts);
    const { files } = tokenizer;
    const json = JSON.parse(files.tokenizer) as object;
    // With a normaliser that does nothing, encoding is left to the library.
    const normalizer = { type: "Sequence", normalizers: [] };
    const whole = createTokenizer({ ...files, tokenizer: JSON.stringify({ ...json, normalizer }) });
    const part = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 12 }),
      fc.constantFrom(
        ...worldTexts,
        ...Object.values(markers),
        " ",
        "  ",
        "\n",
        " \n",
        "1234",
        "it's",
      ),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const text = parts.join("");
        const plain = { plain: true };
        expect(tokenizer.encode(text, plain)).toEqual(whole.encode(text, plain));
      }),
    );
  });

  it("makes every word and every number of its texts one token", () => {
    fc.assert(
      fc.property(world, (sentences) => {
        const texts = sentences.map((things) => things.join(" "));
        const tokenizer = buildTokenizer(texts);
        sentences.forEach((things, at) => {
          const words = things.flatMap((one) => one.split(" "));
          expect(tokenizer.encode(texts[at] as string)).toHaveLength(words.length);
        });
      }),
      { numRuns: 30 },
    );
  });

  it("does not depend on the order of the texts", () => {
    const ids = (texts: readonly string[]) => {
      const tokenizer = buildTokenizer(texts);
      return worldTexts.map((text) => tokenizer.encode(`${text}?`));
    };
    expect(ids([...worldTexts].reverse())).toEqual(ids(worldTexts));
  });

  it("separates words, numbers and symbols", () => {
    const tokenizer = buildTokenizer(["the fridge 1, at $1299 or don't-care12 x"]);
    const tokens = (text: string) => tokenizer.encode(text).map((id) => tokenizer.decode([id]));
    expect(tokens("the fridge 1, at $1299 or don't-care12 x")).toEqual([
      "the",
      " fridge",
      " 1",
      ",",
      " at",
      " $",
      "129",
      "9",
      " or",
      " don't-care",
      "12",
      " x",
    ]);
  });

  it("reads a compact prompt with one token for each marker", () => {
    const tokenizer = buildTokenizer(worldTexts);
    const prompt = promptText(
      promptStyle(housePrompt, { style: "compact" }).render({
        goal: "put a cool plum on the shelf",
        firstObservation: "",
        observation: "The drawer 3 is closed.",
        steps: [],
        admissible: undefined,
        index: 0,
      }),
    );
    expect(tokenizer.encode(prompt)).toHaveLength(1 + 7 + 1 + 6 + 1);
  });

  it("stays within its limit: the rarest words are spelled from pieces", () => {
    const full = buildTokenizer(worldTexts);
    const small = buildTokenizer(worldTexts, { maxVocabulary: 300, subwords: 20 });
    expect(full.vocabularySize).toBeGreaterThan(300);
    expect(small.vocabularySize).toBe(300);
    expect(small.encode(" fridge")).toHaveLength(1);
    expect(small.encode(" happens").length).toBeGreaterThan(1);
    expect(() => buildTokenizer(worldTexts, { maxVocabulary: 100 })).toThrow(
      /maxVocabulary is 100, but .* alone are 263/,
    );
  });

  it("spells unseen words with fewer tokens if it has learnt merges", () => {
    const length = (subwords: number) =>
      buildTokenizer(worldTexts, { subwords }).encode(" shelfdrawer").length;
    expect(length(64)).toBeLessThan(length(0));
  });

  it("can be built without texts", () => {
    const tokenizer = buildTokenizer([]);
    expect(tokenizer.vocabularySize).toBe(263);
    expect(tokenizer.decode(tokenizer.encode("héllo"))).toBe("héllo");
  });
});

describe("merges", () => {
  it("join the leftmost of equal pairs", () => {
    expect(learnMerges([["aaa", 1]], 10)).toEqual([
      ["a", "a"],
      ["aa", "a"],
    ]);
  });

  it("join the most frequent pair first, ties in the order of characters", () => {
    expect(
      learnMerges(
        [
          ["abab", 2],
          ["cab", 1],
          ["xy", 4],
        ],
        10,
      ),
    ).toEqual([
      ["a", "b"],
      ["x", "y"],
      ["ab", "ab"],
      ["c", "ab"],
    ]);
  });

  it("end when every word is whole", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.stringMatching(/^[abc]{1,7}$/), fc.integer({ min: 1, max: 5 }))),
        (words) => {
          const merges = learnMerges(words, 1000);
          const whole = new Set(merges.map(([left, right]) => left + right));
          for (const [word] of words) expect(word.length === 1 || whole.has(word)).toBe(true);
          expect(new Set(merges.map((merge) => merge.join(" "))).size).toBe(merges.length);
        },
      ),
    );
  });
});
