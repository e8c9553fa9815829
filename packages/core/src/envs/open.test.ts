import { searchPrompt } from "@pawl/worlds/search/search.js";
import { expect, it } from "vitest";
import { checkPrompt } from "./open.js";

it("accepts no prompt, neutral ones and our own", () => {
  for (const prompt of [undefined, {}, { history: "all", around: ["a", "b"] }, searchPrompt])
    expect(() => checkPrompt(prompt, "mine")).not.toThrow();
});

it.each([
  ["a-family", /expected object/],
  [{ instruction: "x" }, /instruction/],
  [{ instructions: 5 }, /expected string/],
  [{ parse: "x" }, /expected a function/],
  [{ history: -1 }, /history/],
])("names what is wrong with %j", (prompt, reason) => {
  expect(() => checkPrompt(prompt, "mine")).toThrow(/environment mine: its prompt is not one/);
  expect(() => checkPrompt(prompt, "mine")).toThrow(reason);
});
