import { mkdtempSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import type { Episode } from "../rollout/episode.js";
import { loadTriplets, saveTriplets, type TripletData } from "./triplet-file.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-triplets-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("a file that was cut off between two appends, or emptied, is refused with a remedy", () => {
  const path = join(folder, "triplets.jsonl.gz");
  const source = { goal: "look", steps: [{ action: "look" }] } as unknown as Episode;
  saveTriplets(path, {
    train: [{ source, step: 0 }],
    heldOut: [],
    counts: {},
    reward: "rouge",
  } as unknown as TripletData);
  expect(loadTriplets(path)).toMatchObject({ train: [{ source: { goal: "look" }, step: 0 }] });
  // The head is an append of its own.
  truncateSync(path, readFileSync(path).readUInt32LE(16));
  const remedy = `Remove ${path} to collect the triplets again`;
  expect(() => loadTriplets(path)).toThrow(`the episode 0 is missing. ${remedy}`);
  truncateSync(path, 0);
  expect(() => loadTriplets(path)).toThrow(`${path} is empty. ${remedy}`);
});
