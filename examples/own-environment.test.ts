import { readFileSync } from "node:fs";
import { envChecks } from "pawl";
import { describe, expect, it } from "vitest";
import { guess } from "./own-environment.js";

describe("the example environment", () => {
  for (const check of envChecks(guess.open(guess.options.parse({})))) it(check.name, check.run);

  it("is as short as the manual says", () => {
    const source = readFileSync("examples/own-environment.ts", "utf8");
    const lines = source
      .split("\n")
      .filter((line) => line.trim() !== "" && !line.startsWith("/**"));
    expect(lines.length).toBeLessThanOrEqual(40);
  });
});
