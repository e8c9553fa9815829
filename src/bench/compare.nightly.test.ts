/**
 * Real jobs of the smallest size, in processes: what is done stays, what is new runs.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { findEnvKind } from "../envs/registry.js";
import { createRun } from "../runs/run-folder.js";
import { tinyConfig } from "../train/testing.js";
import { compare } from "./compare.js";
import { comparisonOptions } from "./options.js";
import { readResult, trainingFolder } from "./result-file.js";

const out = join(mkdtempSync(join(tmpdir(), "pawl-compare-")), "out");
const train = tinyConfig({
  warmStart: { episodes: 1, sft: { epochs: 1 } },
  updates: 1,
  groups: 1,
  groupSize: 2,
  evaluation: { every: 0, splits: ["valid_seen"] },
});
const given = { train, out, arms: ["plain"], seeds: [0], evalTasks: 2, threads: 1, jobs: 1 };

/** Runs the comparison; returns the names of the runs that ended. */
async function ran(changes: object = {}): Promise<readonly string[]> {
  const options = comparisonOptions(findEnvKind("household")).parse({ ...given, ...changes });
  const ended: string[] = [];
  const failed = await compare(options, {
    program: resolve("dist/lib/main.js"),
    signal: new AbortController().signal,
    onProgress: () => undefined,
    onEnd: (id, outcome) => ended.push(outcome === "done" ? id : `${id}: ${outcome.message}`),
  });
  expect(failed).toEqual([]);
  return ended;
}

it("adds seeds and arms to a finished comparison, and runs only those", async () => {
  expect(await ran()).toEqual(["default/start", "default/grpo/0"]);
  const first = join(out, "default", "grpo", "seed-0");
  const { mtimeMs } = statSync(join(first, "result.json"));
  const { splits, evaluation } = readResult(first)!;
  expect(evaluation).toEqual({ tasks: 2, rounds: 1 });
  expect(readResult(join(out, "default", "start"))!.weights).toMatch(/^[0-9a-f]{64}$/);
  expect(splits.valid_seen).toMatchObject({ episodes: 2, types: { pick: { episodes: 2 } } });
  expect(existsSync(join(first, "evaluations.json"))).toBe(false);

  // A run that was killed before its first checkpoint, on a machine where its start was elsewhere.
  const killed = join(out, "default", "grpo", "seed-1");
  const moved = { ...train, model: { ...train.model, start: "/nowhere/start" } };
  const run = { folder: trainingFolder(killed), kind: "train", seed: 1, config: moved };
  createRun(run, expect.unreachable).finish("failed");
  expect(await ran({ seeds: [0, 1] })).toEqual(["default/grpo/1"]);
  expect(statSync(join(first, "result.json")).mtimeMs).toBe(mtimeMs);

  // Refused before anything runs: an arm whose settings contradict each other, and what
  // contradicts the finished runs.
  await expect(ran({ arms: ["plain", "ce+rho=0.5"] })).rejects.toThrow(
    /^default\/grpo\+ce\+rho=0\.5: paw\.rho: 0\.5 would change nothing: it needs paw\.loss cmae/,
  );
  // The new seed would contradict the finished ones.
  await expect(ran({ seeds: [2], evalTasks: 3 })).rejects.toThrow(/start was evaluated with/);
  await expect(ran({ seeds: [0, 2], train: { ...train, groups: 2 } })).rejects.toThrow(
    /--train.groups was 1, now 2/,
  );
  // Another arm would be longer than the one it is compared with.
  await expect(ran({ arms: ["paw"], train: { ...train, updates: 2 } })).rejects.toThrow(
    /grpo.seed-0 and .*grpo\+paw.seed-0 cannot be compared, .*: --train.updates 1 and 2\./,
  );
  await expect(ran({ start: trainingFolder(killed), arms: ["actobs"] })).rejects.toThrow(
    /the arm actobs needs a warm start of its own/,
  );
  await expect(ran({ start: trainingFolder(killed) })).rejects.toThrow(/began with other weights/);
  expect(existsSync(join(out, "default", "grpo", "seed-2"))).toBe(false);

  // The start itself, by name; and only the evaluation is repeated where the result was removed.
  rmSync(join(killed, "result.json"));
  const trained = readFileSync(join(trainingFolder(killed), "manifest.json"), "utf8");
  const start = join(out, "default", "start", "model");
  expect(await ran({ seeds: [0, 1], start })).toEqual(["default/grpo/1"]);
  expect(readFileSync(join(trainingFolder(killed), "manifest.json"), "utf8")).toBe(trained);
});
