/** The study's page has what its command prints. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { pairsTable } from "../bench/pairs.js";

it("docs/results/observations.md has the table of npm run bench -- pairs", () => {
  const page = readFileSync("docs/results/observations.md", "utf8");
  expect(page).toContain(pairsTable().join("\n"));
});
