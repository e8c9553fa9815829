import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { runCli } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-tune-cli-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const planned = (...args: readonly string[]) =>
  runCli(["tune", "--dry-run", "--out", join(folder, "new"), ...args]);

it("says what it would search, on which splits, and how many runs that takes", async () => {
  const { code, stdout } = await planned(
    "--quick",
    "--minutes",
    "5",
    "--optimizer.learning-rate",
    "2.5e-3",
  );
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /would search optimizer.learningRate, warmStart.episodes, groupSize of household with tiny for 5 minutes, beginning with rate=0.0025,imitation=1800,group=8\. Nothing was started/,
  );
  expect(stdout).toMatch(/chosen on valid_seen, judged on valid_unseen, 500 tasks each/);
  expect(stdout).toMatch(/13 runs or a few more, each of 12 or 36 updates/);
});

it("leaves out imitation where there is none, and says so", async () => {
  const { stdout } = await planned("--quick", "--warm-start.episodes", "0");
  expect(stdout).toMatch(
    /search optimizer.learningRate, groupSize of .*\(not warmStart.episodes: nothing is imitated\)/,
  );
});

it("refuses what cannot be searched or judged", async () => {
  const refused = async (message: RegExp, ...args: readonly string[]) => {
    const { code, stderr } = await planned(...args);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  };
  await refused(/updates: 0 updates have no settings to search/, "--updates", "0");
  await refused(
    /--evaluation.every: runs are evaluated when they are compared/,
    "--evaluation.every",
    "5",
  );
  await refused(/--minutes: expected at least more than 0/, "--minutes", "0");
  await refused(
    /evaluation.splits: household has .*; settings are chosen on one that is not for tests/,
    ...["--evaluation.splits", "test_unseen,valid_seen"],
  );
  await refused(
    /expected two, got 3/,
    "--evaluation.splits",
    "valid_seen,valid_unseen,test_unseen",
  );
  await refused(/--quick is a smaller household world/, "--quick", "--env", "desk");
  writeFileSync(join(folder, "notes.txt"), "");
  const { stderr } = await runCli(["tune", "--dry-run", "--out", folder]);
  expect(stderr).toMatch(/--out: .* holds something else \(notes.txt\)/);
});

it("judges on a test split where there is no other", async () => {
  const { stdout } = await planned(
    "--env",
    "household",
    "--evaluation.splits",
    "valid_unseen,test_unseen",
  );
  expect(stdout).toMatch(/chosen on valid_unseen, judged on test_unseen/);
});
