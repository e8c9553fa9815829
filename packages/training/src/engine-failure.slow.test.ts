/**
 * An engine that fails in the middle of an update: all of its episodes are learnt from, or none.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole } from "@pawl/core/dose-testing.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { testModel } from "@pawl/engine-remote/remote/model-testing.js";
import { type Fault, startTestServer } from "@pawl/engine-remote/remote/server-testing.js";
import { afterAll, describe, expect, it } from "vitest";
import type { TrainConfig } from "./config.js";
import { trainRun } from "./run.js";
import { tinyConfig } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-engine-failure-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const EPISODES = 16;
const settings = (url: string, changes: object = {}): TrainConfig =>
  tinyConfig({
    engine: { address: url },
    warmStart: { episodes: 0 },
    evaluation: { every: 0 },
    updates: 1,
    groups: 4,
    groupSize: 4,
    stepLimit: 2,
    ...changes,
  });

const refuse: Fault = { status: 500, error: "out of memory" };

/** Trains on a server whose sampling calls, numbered from 0, have these faults. */
async function trainWith(
  name: string,
  fault: (call: number) => Fault | undefined,
  changes: object = {},
) {
  const folder = join(parent, name);
  const server = await startTestServer({
    model: testModel,
    folder: `${folder}-server`,
    extensions: true,
    fault: (path, before) => (path === "sample_batch" ? fault(before) : undefined),
  });
  const failed = await trainRun(settings(server.url, changes), { folder }).then(
    () => undefined,
    (error: Error) => error,
  );
  const run = openRun(folder, (message) => expect.fail(message));
  const episodes = [...run.episodes()];
  const actions = episodes.map(({ steps }) => steps.map(({ action }) => action));
  return { folder, server, failed, actions, run, episodes };
}

describe("an engine that fails in the middle of an update", () => {
  it("once: the call is repeated, and the update has the same episodes as without the failure", async () => {
    const calm = await trainWith("calm", () => undefined);
    const once = await trainWith("once", (call) => (call === 1 ? refuse : undefined));
    expect(calm.server.counts.get("sample_batch")).toBe(2);
    expect(once.server.counts.get("sample_batch")).toBe(3);
    for (const { failed, episodes, run } of [calm, once]) {
      expect(failed).toBeUndefined();
      expect(episodes).toHaveLength(EPISODES);
      expect(run.metrics().at(-1)).toMatchObject({ update: 0, "train.broken": 0 });
    }
    expect(once.actions).toEqual(calm.actions);

    // For good: finished episodes of the update are not learnt from, and the run can be resumed.
    const always = await trainWith("always", (call) => (call >= 1 ? refuse : undefined));
    expect(always.failed?.message).toMatch(/the engine failed twice in a row: .*out of memory/);
    expect(always.run.manifest).toMatchObject({ status: "failed" });
    expect(always.episodes).toHaveLength(0);
    expect(always.run.metrics().map(({ update }) => update)).toEqual([-1]);
    await trainRun(settings(calm.server.url), { folder: always.folder, resume: true });
    const resumed = [...openRun(always.folder, (message) => expect.fail(message)).episodes()];
    expect(resumed.map(({ steps }) => steps.map(({ action }) => action))).toEqual(calm.actions);
    for (const { server } of [calm, once, always]) await server.close();
  });

  it.runIf(isWhole)(
    "in an evaluation: no table of only the tasks that finished early",
    async () => {
      const evaluation = { every: 1, tasks: 2, splits: ["valid_seen"] };
      const { failed, run, server } = await trainWith(
        "evaluation",
        (n) => (n >= 1 ? refuse : undefined),
        {
          evaluation,
        },
      );
      expect(failed?.message).toMatch(/the engine failed twice/);
      expect(run.metrics()).toEqual([]);
      await server.close();
    },
  );
});
