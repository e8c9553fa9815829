import { expect, it } from "vitest";
import { createMemo } from "./memo.js";

it("makes a thing once and forgets what was not asked for the longest", () => {
  const memo = createMemo<string>(2);
  const made: string[] = [];
  const ask = (key: string) =>
    memo(key, () => {
      made.push(key);
      return key.toUpperCase();
    });
  expect(["a", "b", "a", "c", "a", "b"].map(ask)).toEqual(["A", "B", "A", "C", "A", "B"]);
  expect(made).toEqual(["a", "b", "c", "b"]);
});
