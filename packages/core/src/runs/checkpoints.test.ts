import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { bestCheckpoint, latestCheckpoint, saveCheckpoint } from "./checkpoints.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-checkpoints-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const save = (run: string, updates: number, success?: number, keep?: number) =>
  saveCheckpoint(
    join(parent, run),
    { updates, optimizerSteps: updates, ...(success !== undefined && { success }) },
    async (folder) => writeFileSync(join(folder, "weights"), String(updates)),
    keep,
  );
const kept = (run: string) => readdirSync(join(parent, run, "checkpoints")).map(Number);

it("keeps the newest two, and the best that was evaluated beside them", async () => {
  for (const [updates, success] of [[1], [2, 0.5], [3], [4, 0.7], [5], [6, 0.6], [7], [8]] as const)
    await save("a", updates, success);
  expect(kept("a")).toEqual([4, 7, 8]);
  expect(bestCheckpoint(join(parent, "a"))?.state).toMatchObject({ updates: 4, success: 0.7 });
  expect(latestCheckpoint(join(parent, "a"))?.state.updates).toBe(8);
  // Of equals the newest counts.
  await save("a", 9, 0.7);
  expect(kept("a")).toEqual([8, 9]);
});

it("keeps as many as asked for, and knows no best without evaluations", async () => {
  for (const updates of [1, 2, 3, 4]) await save("b", updates, undefined, 3);
  expect(kept("b")).toEqual([2, 3, 4]);
  expect(bestCheckpoint(join(parent, "b"))).toBeUndefined();
});
