import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { afterAll, expect, it } from "vitest";
import { isComparable, replayRun } from "./replay.js";
import { type TrainOptions, trainRun } from "./run.js";
import { tinyConfig } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-curriculum-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const fail = (message: string): never => {
  throw new Error(message);
};

/** Everything that does not depend on time. */
const numbersOf = (folder: string) =>
  openRun(folder, fail)
    .metrics()
    .map((line) => Object.entries(line).filter(([name]) => isComparable(name)));

const branching = { groupSize: 3, stepLimit: 5, advantage: { name: "tree" } };
const hints = { rate: 0.5, hints: "expert" };
const chat = { prompt: { style: "chat" }, model: { start: "tiny", maxContext: 320 } };

it.each<[string, Readonly<Record<string, unknown>>]>([
  ["rate", { curriculum: { rate: 0.5 } }],
  ["redraw", { curriculum: { redraw: 3 } }],
  ["both", { curriculum: { rate: 0.5, redraw: 3 } }],
  ["both, an update ahead", { curriculum: { rate: 0.5, redraw: 3 }, overlap: 1 }],
  ["hints", { curriculum: hints, stepLimit: 12 }],
  [
    "hints for branches, an update ahead",
    {
      ...{ ...branching, curriculum: { ...hints, redraw: 1 }, stepLimit: 12, overlap: 1 },
      ...{ groupSize: 4, rollout: { branch: { points: 1 } } },
    },
  ],
  ["hints of a critic's run", { curriculum: hints, stepLimit: 12, advantage: { name: "ppo" } }],
  ["branches", { ...branching, rollout: { branch: { points: 1, width: 3 } } }],
  ["branches of conversations", { ...branching, ...chat, rollout: { branch: { points: 2 } } }],
  [
    "branches and both, an update ahead, at their own pace",
    {
      ...{ ...branching, curriculum: { rate: 0.5, redraw: 3 }, overlap: 1 },
      rollout: { branch: { points: 2, choose: "refused" }, pace: "own" },
    },
  ],
])("%s: a resumed run plays the same, and its record is replayed", async (name, changes) => {
  const config = tinyConfig({ ...changes, updates: 4, evaluation: { every: 0 }, keep: 9 });
  const whole = join(parent, name);
  await trainRun(config, { folder: whole });
  const folder = join(parent, `${name}-resumed`);
  const stop = new AbortController();
  const onMetrics: TrainOptions["onMetrics"] = (line) => {
    if (line.update === 1) stop.abort(new Error("enough"));
  };
  await expect(trainRun(config, { folder, signal: stop.signal, onMetrics })).rejects.toThrow();
  await trainRun(config, { folder, resume: true });
  expect(numbersOf(folder)).toEqual(numbersOf(whole));
  const records = [whole, folder].map((one) => [...openRun(one, fail).episodes()]);
  expect(records[1]).toEqual(records[0]);
  const replayed = [];
  for await (const one of replayRun(openRun(folder, fail), { losses: true, tolerance: 1e-3 }))
    replayed.push(one);
  expect(replayed.flatMap(({ divergences }) => divergences)).toEqual([]);
  const compared = replayed.flatMap(({ compared: names }) => names);
  const { rate, redraw } = config.curriculum;
  expect(compared.includes("curriculum.expected")).toBe(rate !== undefined);
  const replaced = records[0]!.flatMap((episode) => episode.replaced ?? []);
  expect(compared.includes("curriculum.replaced")).toBe(replaced.length > 0);
  if (redraw === 0) expect(replaced).toEqual([]);
  // Untrained attempts at a room all fail.
  else expect(replaced.length).toBeGreaterThan(3);
  const branches = records[0]!.filter(({ branch }) => branch !== undefined);
  expect(branches.length > 0).toBe(config.rollout.branch.points > 0);
  expect(compared.includes("branch.shared")).toBe(branches.length > 0);
  const isHinted = config.curriculum.hints !== undefined;
  expect(records[0]!.some(({ hint }) => hint)).toBe(isHinted);
  expect(compared.includes("curriculum.hintSteps")).toBe(isHinted);
});
