import { expect, it } from "vitest";
import { createMemo } from "./memo.js";

it("creates a value once and evicts the least recently used", () => {
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
