import { cpSync, mkdtempSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { checkRun } from "@pawl/core/runs/check-run.js";
import { readManifest, writeManifest } from "@pawl/core/runs/manifest.js";
import { openRecordWriter, readRecords } from "@pawl/core/runs/record-file.js";
import { createRun } from "@pawl/core/runs/run-folder.js";
import { afterAll, expect, it } from "vitest";
import { loadTriplets, saveTriplets, type TripletData } from "./triplet.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-triplets-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const fail = (message: string): never => {
  throw new Error(message);
};

it("a file that was cut off between two appends, or emptied, is refused with a remedy", () => {
  const path = join(folder, "triplets.jsonl.gz");
  const source = { goal: "look", steps: [{ prompt: [], action: "look" }] } as unknown as Episode;
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

it("a file from before questions showed tools is known as such", () => {
  const path = join(folder, "older.jsonl.gz");
  saveTriplets(path, { train: [], heldOut: [], counts: {}, reward: "rouge" });
  expect(loadTriplets(path)!.older).toBeUndefined();
  const [head] = [...readRecords(path, ({ message }) => fail(message))] as [{ version?: number }];
  rmSync(path);
  const writer = openRecordWriter(path, ({ message }) => fail(message));
  writer.append([{ ...head, version: undefined }]);
  writer.close();
  expect(loadTriplets(path)!.older).toBe(true);
});

it("a file of another run is refused, and found by check", () => {
  const [one, other] = ["one", "other"].map((name, index) => {
    const run = join(folder, name);
    createRun({ folder: run, kind: "rwml", seed: 0, config: {} }, fail).finish("done");
    writeManifest(run, { ...readManifest(run), createdAt: `2026-01-0${index + 1}T00:00:00.000Z` });
    const data = { train: [], heldOut: [], counts: {}, reward: "rouge" };
    saveTriplets(join(run, "triplets.jsonl.gz"), data);
    return run;
  });
  const path = join(one!, "triplets.jsonl.gz");
  expect(loadTriplets(path)).toMatchObject({ reward: "rouge" });
  const foundIn = (run: string) =>
    checkRun(run).find(({ part }) => part === "triplets.jsonl.gz")!.problems;
  expect(foundIn(one!)).toEqual([]);
  cpSync(join(other!, "triplets.jsonl.gz"), path);
  const foreign = `${path} is of another run: that one was started at 2026-01-02T00:00:00.000Z, this one at 2026-01-01T00:00:00.000Z`;
  expect(() => loadTriplets(path)).toThrow(`${foreign}. Remove ${path} to collect`);
  expect(foundIn(one!)).toEqual([foreign]);
  truncateSync(path, 0);
  expect(foundIn(one!)).toEqual([`${path} is empty`]);
});
