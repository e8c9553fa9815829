import { appendFileSync, mkdtempSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sumOf, sumsPath } from "@pawl/core/runs/metrics-file.js";
import { metricsPath } from "@pawl/core/runs/small-file.js";
import { beforeEach, describe, expect, it } from "vitest";
import { readTail, secondsLeft } from "./run-rows.js";

let folder: string;
const write = (lines: readonly object[], more = "", flag = "a"): void =>
  writeFileSync(
    metricsPath(folder),
    lines.map((line) => `${JSON.stringify(line)}\n`).join("") + more,
    {
      flag,
    },
  );
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-tail-"));
});

describe("the end of a run's metrics", () => {
  it("is nothing before there are any", () => {
    const tail = readTail(folder);
    expect(tail).toMatchObject({ update: null, headline: undefined });
    expect(secondsLeft(tail, 10)).toBeNull();
  });

  it("has the last evaluation, however long ago, and the time of the last 20 updates", () => {
    write([{ update: -1, "eval.a.success": 0.25 }]);
    write(
      Array.from({ length: 40 }, (_, update) => ({
        update,
        "train.success": 0.75,
        "seconds.learn": update < 20 ? 100 : 2,
        "seconds.rollout": 1,
      })),
    );
    const tail = readTail(folder);
    expect(tail).toMatchObject({ update: 40, headline: { success: 0.25, of: "eval.a.success" } });
    expect(secondsLeft(tail, 50)).toBe(30);
    expect(secondsLeft(tail, null)).toBeNull();
    expect(secondsLeft(tail, 30)).toBe(0);
  });

  it("counts an evaluation more than training, and a held-out reward more than training", () => {
    write([{ update: 0, "train.success": 0.5 }]);
    const trained = readTail(folder);
    expect(trained).toMatchObject({ headline: { success: 0.5, of: "train.success" } });
    write([{ update: 1, "heldOut.reward": 0.1, "train.success": 0.6 }]);
    const held = readTail(folder, trained);
    expect(held).toMatchObject({ headline: { success: 0.1, of: "heldOut.reward" } });
    write([{ update: 2, "train.success": 0.7 }]);
    expect(readTail(folder, held)).toMatchObject({
      headline: { success: 0.1, of: "heldOut.reward" },
    });
    write([{ update: 3, "eval.a.success": 0.9 }]);
    expect(readTail(folder, held)).toMatchObject({ headline: { success: 0.9 }, update: 4 });
  });

  it("reads on where it was, also over a line that was not finished, as from the start", () => {
    write([{ update: 0, "train.success": 0.5, "seconds.learn": 1 }], '{"update":1,"train');
    const before = readTail(folder);
    expect(before.update).toBe(1);
    write([], '.success":1,"seconds.learn":3}\nnonsense\n');
    const now = readTail(folder, before);
    expect(now).toMatchObject({ update: 2, headline: { success: 1 }, seconds: [1, 3] });
    expect(now).toEqual(readTail(folder));
  });

  it("is compared with checksums, which a process writes after its lines", () => {
    const sums = sumsPath(metricsPath(folder));
    const sumUp = (line: object): void => appendFileSync(sums, `${sumOf(JSON.stringify(line))}\n`);
    const line = (update: number) => ({ update, "train.success": 0.5 });
    write([line(0)]);
    let tail = readTail(folder);
    for (let update = 1; update < 5; update++) {
      write([line(update)]);
      sumUp(line(update - 1));
      tail = readTail(folder, tail);
      expect(tail).toMatchObject({ update: update + 1, isDamaged: false });
    }
    // What comes now is not what was written.
    for (const written of [line(4), { ...line(5), "train.success": 0.75 }]) sumUp(written);
    write([line(5)]);
    expect(readTail(folder, tail)).toMatchObject({ update: 5, isDamaged: true });
    expect(readTail(folder)).toMatchObject({
      update: 5,
      headline: { success: 0.5 },
      isDamaged: true,
    });
  });

  it("starts again when a resumed run has written its metrics anew", () => {
    write([{ update: 0 }, { update: 1, "train.success": 0.5 }]);
    const before = readTail(folder);
    const draft = join(folder, "draft");
    writeFileSync(draft, `${'{"update":0,"train.success":0.125}'.padEnd(200)}\n`);
    renameSync(draft, metricsPath(folder));
    expect(readTail(folder, before)).toMatchObject({ update: 1, headline: { success: 0.125 } });
  });
});
