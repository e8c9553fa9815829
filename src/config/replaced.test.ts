import { expect, it } from "vitest";
import { hintFor } from "./replaced.js";

it("says what a removed or renamed setting is called now, as a flag or in a file", () => {
  expect(hintFor("--paw.balance", [])).toBe(" It is now called paw.lambda.");
  expect(hintFor("invalid.patience", [])).toBe(" It is now called invalidActionLimit.");
  expect(hintFor("--gradient-sample", [])).toMatch(/gradients\.every/);
  expect(hintFor("--engine.name", ["--env.name"])).toMatch(/engine\.address/);
});

it("otherwise names the nearest, and knows no setting by the names that every object has", () => {
  expect(hintFor("--env.nam", ["--env.name"])).toContain("--env.name");
  expect(hintFor("constructor", [])).toBe("");
});
