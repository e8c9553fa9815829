import { expect, it } from "vitest";
import { didYouMean, nearest } from "./nearest.js";

it("finds the intended word, and nothing if none is close", () => {
  expect(nearest("groop-size", ["seed", "group-size", "groups"])).toBe("group-size");
  expect(nearest("Seed", ["seed", "split"])).toBe("seed");
  expect(nearest("xyzzy", ["seed", "split"])).toBeUndefined();
  expect(didYouMean("splitt", ["seed", "split"])).toBe(' Did you mean "split"?');
  expect(didYouMean("xyzzy", ["seed"])).toBe("");
});
