import { expect, it } from "vitest";
import { table, widthOf, wrap, wrapParagraphs } from "./format.js";

it("aligns columns by what they take on the screen, numbers to the right", () => {
  const lines = table(
    ["run", "kind", "updates"],
    [
      ["訓練", "train", "3"],
      ["e\u0301tude", "eval", "1,000"],
    ],
  );
  expect(lines).toEqual([
    "run    kind   updates",
    "訓練   train        3",
    "e\u0301tude  eval     1,000",
  ]);
});

it("breaks between words, and only there", () => {
  expect(wrap("one two three", 7)).toEqual(["one two", "three"]);
  expect(wrap("unbreakable word", 4)).toEqual(["unbreakable", "word"]);
  expect(wrap("", 10)).toEqual([""]);
});

it("wraps paragraphs anew, and leaves columns and empty lines alone", () => {
  expect(wrapParagraphs("a b\nc d\n\ne\n  col  umn\nf", 5)).toEqual([
    "a b c",
    "d",
    "",
    "e",
    "  col  umn",
    "f",
  ]);
});

it("keeps to readable widths", () => {
  expect([widthOf(20), widthOf(80), widthOf(300), widthOf(undefined)]).toEqual([50, 80, 120, 100]);
});
