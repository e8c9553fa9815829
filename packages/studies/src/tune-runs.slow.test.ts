import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { afterAll, expect, it } from "vitest";
import { trainingFolder } from "./result-file.js";
import { candidateOf, tunedConfig, tuneRuns } from "./tune-runs.js";

const out = mkdtempSync(join(tmpdir(), "pawl-tune-"));
afterAll(() => rmSync(out, { recursive: true, force: true }));

const base = tinyConfig({ updates: 2, groupSize: 4, evaluation: { tasks: 3 } });
const given = candidateOf(base);
const ended: string[] = [];
const runner = (left: number, signal = new AbortController().signal) =>
  tuneRuns({
    ...{ base, out, choose: "valid_seen", judge: "valid_unseen", tasks: 3, early: 1 },
    ...{ places: 2, threads: 2, left: () => left, program: resolve("dist/lib/main.js"), signal },
    onProgress: () => undefined,
    onEnd: (name) => ended.push(name),
  });

it("keeps the number of episodes of an update", () => {
  const { groups, groupSize } = tunedConfig(base, { ...given, groupSize: 2 });
  expect([base.groups * base.groupSize, groups * groupSize]).toEqual([8, 8]);
});

it("stops runs early, goes on with them, and does nothing twice or out of time", async () => {
  const trials = [given, { ...given, rate: 1e-5 }].map((candidate) => ({ candidate, seed: 0 }));
  expect(await runner(0).train(trials, 1)).toBeUndefined();
  expect(await runner(0.1).train(trials, 1)).toBeUndefined();
  expect(ended).toEqual([]);
  const early = await runner(600).train(trials, 1);
  expect(early).toMatchObject([{ episodes: 3 }, { episodes: 3 }]);
  // One imitation for both.
  expect([...ended].sort()).toEqual([
    "imitation=8, seed 0",
    "rate=0.00001,imitation=8,group=4, seed 0",
    `rate=${given.rate},imitation=8,group=4, seed 0`,
  ]);
  const folder = join(out, `rate=${given.rate},imitation=8,group=4`, "seed-0");
  const run = () => openRun(trainingFolder(folder), expect.unreachable);
  expect(run().manifest.status).toBe("interrupted");
  expect(run().manifest.config).toMatchObject({ updates: 2, warmStart: { episodes: 0 } });
  // What is known costs no time.
  expect(await runner(0).train(trials, 1)).toEqual(early);

  expect(await runner(600).judge([trials[0]!])).toMatchObject([{ episodes: 3 }]);
  expect(run().manifest.status).toBe("done");
  expect(
    run()
      .metrics()
      .map(({ update }) => update),
  ).toEqual([-1, 0, 1]);
  expect(await runner(0).judge([trials[0]!])).toMatchObject([{ episodes: 3 }]);
});

it("says what all runs have in common, and hands on that the user stopped it", async () => {
  const unknown = { ...given, rate: -1 };
  await expect(runner(600).train([{ candidate: unknown, seed: 0 }], 1)).rejects.toThrow(
    /optimizer.learningRate/,
  );
  const stopped = AbortSignal.abort(new Error("Ctrl-C"));
  await expect(runner(600, stopped).train([{ candidate: given, seed: 9 }], 1)).rejects.toThrow(
    "Ctrl-C",
  );
});
