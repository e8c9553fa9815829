import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { checkRun } from "./check-run.js";
import { readManifest, writeManifest } from "./manifest.js";
import { createRun, finishFailed, openRun, resumeRun } from "./run-folder.js";
import { secondsOf } from "./run-list.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-run-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const fail = (message: string): never => {
  throw new Error(message);
};
const start = (name: string) =>
  createRun({ folder: join(parent, name), kind: "train", seed: 0, config: { updates: 2 } }, fail);
const keep = { episode: () => true, metrics: () => true };

/** As on a full disk: the manifest can no longer be replaced. */
function blockManifest(folder: string): void {
  rmSync(join(folder, "manifest.json"));
  mkdirSync(join(folder, "manifest.json"));
  writeFileSync(join(folder, "manifest.json", "in-the-way"), "");
}

describe("a run whose end cannot be written", () => {
  it("reports that next to the error that ended it, and releases the folder", () => {
    const run = start("full");
    blockManifest(run.folder);
    const problems: string[] = [];
    finishFailed(run, new Error("the real reason"), {
      onProblem: (message) => problems.push(message),
    });
    expect(problems).toEqual([
      expect.stringMatching(/how the run ended could not be written: .*manifest/),
    ]);
    expect(existsSync(join(run.folder, "lock"))).toBe(false);
  });

  it("throws if nothing else was wrong", () => {
    const run = start("full-at-last");
    blockManifest(run.folder);
    expect(() => run.finish("done")).toThrow(/could not write .*manifest/);
    expect(existsSync(join(run.folder, "lock"))).toBe(false);
  });
});

describe("a resumed run", () => {
  it("records on every resume what changed, and from which update", () => {
    const run = start("longer");
    run.recordMetrics({ update: 0 });
    run.finish("done");
    const changed = { updates: { from: 2, to: 5 } };
    resumeRun(run.folder, { keep, updates: 2, config: { updates: 5 }, changed }, fail).finish(
      "done",
    );
    // From an earlier checkpoint: what changed at 2 now holds from 1.
    resumeRun(run.folder, { keep, updates: 1 }, fail).finish("interrupted");
    const { config, resumes, status } = readManifest(run.folder);
    expect([config, status]).toEqual([{ updates: 5 }, "interrupted"]);
    expect(resumes).toMatchObject([
      { update: 1, changed },
      { update: 1, changed: {} },
    ]);
    expect(openRun(run.folder, fail).active).toBe(false);
  });

  it("took as long as its parts together", () => {
    const minute = (at: number): string => new Date(at * 60_000).toISOString();
    const run = start("parts");
    run.finish("interrupted");
    const { checksum: _, ...manifest } = readManifest(run.folder);
    writeManifest(run.folder, { ...manifest, createdAt: minute(0), finishedAt: minute(3) });
    resumeRun(run.folder, { keep, updates: 0 }, fail).finish("done");
    const { resumes, ...rest } = readManifest(run.folder);
    expect(resumes).toMatchObject([{ stoppedAt: minute(3) }]);
    const told = { ...rest, resumes: [{ ...resumes![0]!, at: minute(60) }] };
    const ended = { ...told, finishedAt: minute(64) };
    expect(secondsOf({ ...openRun(run.folder, fail), manifest: ended })).toBe(7 * 60);
  });
});

describe("a folder with a run that failed", () => {
  it("is used again if nothing was recorded, and left alone otherwise", () => {
    finishFailed(start("again"), new Error("no server"), {});
    const second = start("again");
    second.recordMetrics({ update: 0 });
    finishFailed(second, new Error("later"), {});
    expect(() => start("again")).toThrow(/already holds a run/);
    start("ended").finish("done");
    expect(() => start("ended")).toThrow(/already holds a run/);
    const weights = start("weights");
    mkdirSync(join(weights.folder, "reference"));
    finishFailed(weights, new Error("later"), {});
    expect(() => start("weights")).toThrow(/already holds a run/);
  });
});

it.each([
  ["train", { groups: 2 }, true],
  ["rwml", { triplets: 4, task: { groups: 0 } }, true],
  ["wm-train", {}, false],
] as const)("a run of %s without its episodes is noticed: %j", (kind, config, isNoticed) => {
  const run = createRun({ folder: join(parent, kind), kind, seed: 0, config }, fail);
  for (const update of [0, 1]) run.recordMetrics({ update });
  run.finish("done");
  const problems: string[] = [];
  expect([...openRun(run.folder, (message) => problems.push(message)).episodes()]).toEqual([]);
  const said = isNoticed
    ? [expect.stringContaining("no episodes, though there were 2 updates")]
    : [];
  expect(problems).toEqual(said);
  const [found] = checkRun(run.folder).filter(({ part }) => part === "episodes");
  expect(found!.problems).toEqual([
    ...said,
    ...(isNoticed ? ["the episodes of updates 1–2 are missing"] : []),
  ]);
});
