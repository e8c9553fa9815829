import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { exactMatch, f1Score, normaliseAnswer, parseAction, writeAction } from "./search-env.js";

describe("normalising an answer", () => {
  it.each([
    ["The  Beatles!", "beatles"],
    ["an apple, a day", "apple day"],
    ["St. Mary's", "st marys"],
    ["U.S.A.", "usa"],
    ["Theatre of the Absurd", "theatre of absurd"],
    ["Þa Đa aé", "þa đa aé"],
    ["snake_case the_end", "snakecase theend"],
    ["“Ünïcode” — 橡木", "“ünïcode” — 橡木"],
    ["The The", ""],
    [" \t\n", ""],
  ])("%j is %j", (text, normal) => {
    expect(normaliseAnswer(text)).toBe(normal);
  });

  it("is idempotent", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const once = normaliseAnswer(text);
        expect(normaliseAnswer(once)).toBe(once);
        expect(exactMatch(text, [once])).toBe(true);
      }),
    );
  });
});

describe("scoring an answer", () => {
  it.each([
    ["december 14, 1972", ["14 December 1972 UTC", "December 1972"], false, 6 / 7],
    ["The Titan IIIE", ["titan iiie"], true, 1],
    ["Paris", ["London"], false, 0],
    ["a b b", ["b b b c"], false, 4 / 6],
    ["the", ["x"], false, 0],
    ["x", [], false, 0],
  ])("%j against %j", (answer, right, match, score) => {
    expect(exactMatch(answer, right)).toBe(match);
    expect(f1Score(answer, right)).toBeCloseTo(score, 12);
  });

  it("is between 0 and 1, and 1 for every exact match", () => {
    const word = fc.constantFrom("red", "The", "oak", "lamp.", "an", "ü");
    const text = fc.array(word).map((words) => words.join(" "));
    fc.assert(
      fc.property(text, fc.array(text), (answer, right) => {
        const score = f1Score(answer, right);
        expect(score >= 0 && score <= 1).toBe(true);
        if (exactMatch(answer, right)) expect(score).toBe(1);
      }),
    );
  });
});

describe("reading an action", () => {
  it.each([
    ["<search>who wrote it</search>", { kind: "search", text: "who wrote it" }],
    [" <answer> Lisbon </answer>\n", { kind: "answer", text: "Lisbon" }],
    ["<search>a < b > c</search>", { kind: "search", text: "a < b > c" }],
    ["<search></search>", undefined],
    ["<search>", undefined],
    ["<search>a</answer>", undefined],
    ["<search>a</search><answer>b</answer>", undefined],
    ["<search>a</search><search>b</search>", undefined],
    ["Lisbon", undefined],
    ["", undefined],
  ])("%j", (action, parsed) => {
    expect(parseAction(action)).toEqual(parsed);
  });

  it("parses what it writes", () => {
    fc.assert(
      fc.property(fc.constantFrom("search", "answer"), fc.string(), (kind, raw) => {
        const text = raw.trim();
        const parsed = parseAction(writeAction({ kind, text }));
        expect(parsed).toEqual(text === "" ? undefined : { kind, text });
      }),
    );
  });
});
