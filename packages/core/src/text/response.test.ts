import { searchPrompt } from "@pawl/worlds/search/search.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { answersOf } from "./response.js";

const ends = ["<|see|>", "<|end|>"];
const { parse: parseTagged } = answersOf({}, "tags");
const { parse: parseSearch } = answersOf(searchPrompt, "tags");
const { parse: parseLine } = answersOf({}, "line", ends);
const { parse: parseSearchLine } = answersOf(searchPrompt, "line", ends);

/** Words of an action: no angle brackets, one blank between words. */
const action = fc
  .array(fc.stringMatching(/^[^\s<>]{1,8}$/), { minLength: 1, maxLength: 6 })
  .map((words) => words.join(" "));

describe("answers in tags", () => {
  it.each([
    ["<think>why</think><action>open fridge 1</action>", "open fridge 1", true],
    ["<think></think>\n<action>\n open   fridge 1\n</action>\n", "open fridge 1", true],
    ["<THINK>x</Think> so: <Action>look</ACTION>", "look", true],
    ["< think >x</ think >< action >look</ action >", "look", true],
    ["<think>a</think><think>b</think><action>look</action>", "look", true],
    ["<think>a</think><action>look</action><action>go north</action>", "look", true],
    ["<action>look</action>", "look", false],
    ["<action>look</action><think>late</think>", "look", false],
    ["<think>never closed <action>look</action>", "look", false],
    ["<think>first <action>look</action></think><action>go</action>", "look", false],
    ["<think>x</think><action>look", "look", false],
    ["<think>x</think><action>look\nand then I will see", "look", false],
    ["<think>x</think><action>look<action>go</action>", "look", false],
    ["<think>x</think>look</action>", "look", false],
    ["<think>x</think><action> \n </action>", "", false],
    ["<think>x</think>\nI will go.\nAction: look", "look", false],
    ["look", "look", false],
    ["", "", false],
    ["<think>", "", false],
  ])("house: %j", (response, expected, wellFormed) => {
    expect(parseTagged(response)).toEqual({ action: expected, wellFormed });
  });

  it.each([
    ["<think>x</think><search>who wrote it</search>", "<search>who wrote it</search>", true],
    ["<think>x</think><answer>Lisbon</answer>", "<answer>Lisbon</answer>", true],
    ["<think>x</think><search>a</search><answer>b</answer>", "<search>a</search>", false],
    ["<think>x</think><search>a</search><search>b</search>", "<search>a</search>", false],
    ["<think>x</think><search>a</answer>", "<search>a</search>", false],
    ["<answer>b</answer>", "<answer>b</answer>", false],
    ["<think>x</think><search></search>", "", false],
    ["<think>x</think><action>search</action>", "<action>search</action>", false],
    ["Lisbon", "Lisbon", false],
  ])("search: %j", (response, expected, wellFormed) => {
    expect(parseSearch(response)).toEqual({ action: expected, wellFormed });
  });

  it("finds the action in any surroundings without tags", () => {
    const prose = fc.string().filter((text) => !text.includes("<"));
    fc.assert(
      fc.property(prose, prose, prose, action, (before, thought, after, wanted) => {
        const response = `${before}<think>${thought}</think>${after}<action>${wanted}</action>${before}`;
        expect(parseTagged(response)).toEqual({ action: wanted, wellFormed: true });
      }),
    );
  });

  it("parses any mixture of tags and text, and calls it well-formed only if it is", () => {
    const tokens = fc.constantFrom(
      "<think>",
      "</think>",
      "<action>",
      "</action>",
      "a",
      " ",
      "\n",
      "<",
    );
    fc.assert(
      fc.property(fc.array(tokens, { maxLength: 14 }), (parts) => {
        const response = parts.join("");
        const parsed = parseTagged(response);
        expect(parsed.action).toBe(parsed.action.trim());
        const shape = parts.filter((part) => part.length > 1).join("");
        if (parsed.wellFormed) {
          expect(shape).toMatch(/^(<think><\/think>)+<action><\/action>/);
          expect(parsed.action).not.toBe("");
        }
      }),
    );
  });

  it("reads huge hostile inputs to the end", () => {
    const size = 500_000;
    for (const part of ["<", "< ", "<think>", "</action", "<\t/\t", " ", "\n", "<action>a"]) {
      const response = part.repeat(Math.ceil(size / part.length));
      expect(parseTagged(response).wellFormed).toBe(false);
      expect(parseLine(response).action.length).toBeLessThanOrEqual(response.length);
    }
    const buried = `<think>${"< ".repeat(size / 2)}</think><action>look</action>`;
    expect(parseTagged(buried)).toEqual({ action: "look", wellFormed: true });
  });
});

describe("answers that are the action itself", () => {
  it.each([
    ["open fridge 1<|see|>", "open fridge 1", true],
    ["open fridge 1", "open fridge 1", true],
    ["  open fridge 1 \n", "open fridge 1", true],
    ["open fridge 1\nlook<|see|>", "open fridge 1", false],
    ["look<|end|>go<|see|>", "look", true],
    ["<|see|>", "", false],
    ["", "", false],
  ])("house: %j", (response, expected, wellFormed) => {
    expect(parseLine(response)).toEqual({ action: expected, wellFormed });
  });

  it.each([
    ["<search>who</search><|see|>", "<search>who</search>", true],
    ["<search> who wrote it </search><|see|>", "<search> who wrote it </search>", true],
    ["<search>  who wrote it </search><|see|>", "<search>who wrote it</search>", false],
    ["well <search>who</search>", "<search>who</search>", false],
    ["<search>who</search> well", "<search>who</search>", false],
    ["<search>who</search><answer>me</answer>", "<search>who</search>", false],
    ["who", "who", false],
  ])("search: %j", (response, expected, wellFormed) => {
    expect(parseSearchLine(response)).toEqual({ action: expected, wellFormed });
  });
});
