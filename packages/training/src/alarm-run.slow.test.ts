/** Alarms of a run: recorded, reported, and an end that can be resumed. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { alarmOptions } from "@pawl/core/alarms/alarm.js";
import { EngineError } from "@pawl/core/engine/engine.js";
import { readAlarms } from "@pawl/core/runs/alarms-file.js";
import { latestCheckpoint } from "@pawl/core/runs/checkpoints.js";
import { createRun, openRun } from "@pawl/core/runs/run-folder.js";
import { type SeenAlarm, StoppedByAlarm } from "@pawl/core/train/watch.js";
import { afterAll, expect, it } from "vitest";
import { conductRun } from "./lifecycle.js";
import { trainRun } from "./run.js";
import { tinyConfig } from "./testing.js";
import { trackOptions } from "./trackers/options.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-alarms-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const never = (message: string) => expect.unreachable(message);

const track = trackOptions.parse({});

/** Groups of one episode are always equal. */
const config = tinyConfig({
  updates: 3,
  groupSize: 1,
  checkpointEvery: 2,
  evaluation: { every: 0 },
  alarms: { groups: 1 },
  stopOn: ["groups"],
});

it("an alarm ends a run with a checkpoint, and a resumed run goes on", async () => {
  const folder = join(parent, "stopped");
  const seen: SeenAlarm[] = [];
  const onAlarm = (alarm: SeenAlarm) => void seen.push(alarm);
  await expect(trainRun(config, { folder, onAlarm })).rejects.toThrow(
    /^stopped by the alarm groups at update 1: .* pawl train --resume .* continues it$/,
  );
  expect(seen).toMatchObject([{ alarm: "groups", update: 0, stops: true }]);
  const stopped = openRun(folder, never);
  expect(stopped.manifest).toMatchObject({
    status: "stopped",
    stoppedBy: { alarm: "groups", update: 0, text: seen[0]!.text },
  });
  expect(stopped.active).toBe(false);
  expect(stopped.metrics().at(-1)).toMatchObject({ "train.equalGroups": 1, "alarm.groups": 1 });
  expect(readAlarms(folder, never)).toHaveLength(1);
  // None was due yet.
  expect(latestCheckpoint(folder)!.state.updates).toBe(1);

  // The fault is known: it stops the run again only after it has gone away and come back.
  await trainRun(config, { folder, resume: true, onAlarm });
  const done = openRun(folder, never);
  expect(done.manifest.status).toBe("done");
  expect(done.manifest.stoppedBy).toBeUndefined();
  expect(done.metrics().map((line) => line["alarm.groups"])).toEqual([undefined, 1, 1, 1]);
  expect(seen).toHaveLength(1);
});

it("NaN that an engine refuses is an alarm of the update in progress", async () => {
  for (const stopOn of [[], ["nan"]]) {
    const folder = join(parent, `nan-${stopOn.length}`);
    const run = createRun({ folder, kind: "train", seed: 0, config: {} }, never);
    const seen: SeenAlarm[] = [];
    const error = new EngineError("the gradient of layer 1 is not finite (NaN or infinity)");
    const ending = conductRun(
      run,
      {
        ...{
          folder,
          kind: "train",
          groupsPerUpdate: 1,
          track,
          watch: { alarms: alarmOptions.parse({}), stopOn },
        },
        onAlarm: (alarm) => void seen.push(alarm),
      },
      async ({ report }) => {
        report({ update: 0 });
        throw error;
      },
    );
    const stops = stopOn.length > 0;
    await expect(ending).rejects.toBeInstanceOf(stops ? StoppedByAlarm : EngineError);
    expect(openRun(folder, never).manifest.status).toBe(stops ? "stopped" : "failed");
    expect(seen).toMatchObject([{ alarm: "nan", update: 1, text: error.message, stops }]);
    expect(openRun(folder, never).metrics().at(-1)).toEqual({ update: 1, "alarm.nan": 1 });
  }
});

it("another error after an alarm is not hidden by it", async () => {
  const folder = join(parent, "other");
  const run = createRun({ folder, kind: "train", seed: 0, config: {} }, never);
  const watch = { alarms: alarmOptions.parse({ groups: 1 }), stopOn: ["groups"] };
  const ending = conductRun(
    run,
    { folder, kind: "train", groupsPerUpdate: 1, track, watch },
    async (running) => {
      running.report({ update: 0, "train.equalGroups": 1, "train.return": 0 });
      expect(running.isStopping()).toBe(true);
      throw new Error("the disk is full");
    },
  );
  await expect(ending).rejects.toThrow("the disk is full");
  expect(openRun(folder, never).manifest).toMatchObject({
    status: "failed",
    error: "the disk is full",
  });
});
