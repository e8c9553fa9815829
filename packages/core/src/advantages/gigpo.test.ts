import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { clusterTexts, comparable, isSimilar, ratio } from "./gigpo.js";

const ratioOf = (a: string, b: string) => ratio(comparable(a), comparable(b));

const long = "You arrive at fridge 1. The fridge 1 is closed. ".repeat(5);
const other = long.replaceAll("fridge 1", "fridge 2").replaceAll("closed", "open");
const cubes = Array.from({ length: 14 }, (_, n) => n + 2)
  .map((i) => `${i} times ${i * i} is ${i ** 3},`)
  .join(" ");
const letters = (count: number, slope: number) =>
  Array.from({ length: count }, (_, i) =>
    String.fromCharCode(97 + ((i * i * 7 + i * slope) % 26)),
  ).join("");

describe("ratio", () => {
  // The expected numbers are what Python 3.11's SequenceMatcher(None, a, b).ratio() prints.
  it.each([
    ["", "", 1],
    ["", "a", 0],
    ["abcd", "bcde", 0.75],
    ["private Thread currentThread;", "private volatile Thread currentThread;", 0.8656716417910447],
    ["tide", "diet", 0.25],
    ["diet", "tide", 0.5],
    ["a😀b", "a😀c", 0.6666666666666666],
    ["\uffffa", "\uffffb", 0.5],
    ["\u{10000}a", "\u{10000}b", 0.5],
    // The longest block goes first, not the first one.
    ["zabc", "abcz", 0.75],
    ["one two three four", "three four one two", 0.5555555555555556],
    ["abcabcabd", "abdabcabc", 0.6666666666666666],
    [long, other, 0.08936170212765958],
    [other, long, 0.08936170212765958],
    [
      `Doc 1 (Title: Zürich) Quartz glyph job vext 42. ${cubes}`,
      `Doc 1 (Title: Zürich) Quartz glyph vow 42. ${cubes}`,
      0.986046511627907,
    ],
    [letters(260, 3), letters(240, 5), 0.004],
    [letters(240, 5), letters(260, 3), 0.004],
    ["ab".repeat(150), "ab".repeat(150), 1],
    // A block may continue over characters that may not start one.
    [
      "abaabbbJPbbba",
      "abaabaaaabaaJbbaabaGbaaRbCbCbaaababaabaOababaabbbbaAaEaaAaababbaabbaaaOaabbaabaIbCAMaabSabBaaDaaKbbOaabaabaabbbJbKbaHbbHbNNabababCbaabbaTbKaGLNIbbaabDASJaabaaOEaaaaabbPbbbbaabaJaaabbaaababbbabbbAaaaSb",
      0.08450704225352113,
    ],
  ])("of pair %# is difflib's", (a, b, expected) => {
    expect(ratioOf(a, b)).toBe(expected);
  });

  // From 200 characters on, a character that occurs more than n/100 + 1 times starts no block.
  it.each([
    [199, 4, 0.01990049751243781],
    [200, 3, 0.019801980198019802],
    [200, 4, 0.009900990099009901],
    [299, 3, 0.013289036544850499],
    [299, 4, 0.006644518272425249],
    [300, 4, 0.013245033112582781],
    [300, 5, 0.006622516556291391],
  ])(
    "with a text of %i characters, %i of them the same, is difflib's",
    (length, same, expected) => {
      const text = Array.from({ length }, (_, i) =>
        i % 40 === 0 && i / 40 < same ? "x" : String.fromCharCode(0x4e00 + i),
      ).join("");
      expect(ratioOf("xx", text)).toBe(expected);
    },
  );

  const anyText = fc.string({ unit: fc.constantFrom("a", "b", "c", " "), maxLength: 30 });

  it("lies in [0, 1], is 1 for equal texts only, and decides similarity", () => {
    fc.assert(
      fc.property(
        anyText,
        anyText,
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        (a, b, threshold) => {
          const similarity = ratioOf(a, b);
          expect(similarity).toBeGreaterThanOrEqual(0);
          expect(similarity === 1).toBe(a === b);
          expect(isSimilar(comparable(a), comparable(b), threshold)).toBe(similarity >= threshold);
        },
      ),
    );
  });
});

describe("clusterTexts", () => {
  it("joins equal texts, or similar ones to the first of a cluster", () => {
    const texts = [
      "open the door 1",
      "open the door 2",
      "go north",
      "open the door 1",
      "go north!",
    ];
    expect(clusterTexts(texts, 1)).toEqual([0, 1, 2, 0, 3]);
    expect(clusterTexts(texts, 0.9)).toEqual([0, 0, 1, 0, 1]);
  });

  it("compares with the first member, not with the last", () => {
    expect(clusterTexts(["aaaa", "aaab", "aabb"], 0.75)).toEqual([0, 0, 1]);
  });

  it("gives the same as comparing every text with every cluster", () => {
    const anyText = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 6 });
    fc.assert(
      fc.property(
        fc.array(anyText),
        fc.double({ min: 0.3, max: 0.99, noNaN: true }),
        (texts, threshold) => {
          const heads: string[] = [];
          const slow = texts.map((text) => {
            const cluster = heads.findIndex((head) => ratioOf(text, head) >= threshold);
            return cluster >= 0 ? cluster : heads.push(text) - 1;
          });
          expect(clusterTexts(texts, threshold)).toEqual(slow);
        },
      ),
    );
  });
});
