/** Run folders that disks, people and power cuts have damaged: found, named, nothing lost silently. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole } from "@pawl/core/dose-testing.js";
import { readManifest, writeManifest } from "@pawl/core/runs/manifest.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { coresNotice } from "./resume.js";
import { trainRun } from "./run.js";
import { tinyConfig } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-damaged-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const fail = (message: string): never => {
  throw new Error(message);
};

const config = tinyConfig({ updates: 3, evaluation: { every: 0 }, checkpointEvery: 1 });
const done = join(parent, "done");
beforeAll(() => trainRun(config, { folder: done }));

function copyOf(name: string): string {
  const copy = join(parent, name);
  cpSync(done, copy, { recursive: true });
  return copy;
}

const resume = (run: string) => runCli(["train", "--resume", run, "--updates", "4"]);
const episodesIn = (run: string) => [...openRun(run, () => undefined).episodes()].length;

function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at]! ^= 4;
  writeFileSync(path, bytes);
}

/** Where the appends of an episode file begin. */
function appends(bytes: Buffer): readonly number[] {
  const starts: number[] = [];
  for (let at = 0; at < bytes.length; at += bytes.readUInt32LE(at + 16)) starts.push(at);
  return starts;
}

describe("a damaged checkpoint is refused by name, with a remedy", () => {
  it.each([
    ["model.safetensors", "damaged \\(checksum mismatch\\)"],
    ["optimizer.safetensors", "missing"],
    ["state.json", "damaged"],
  ])("%s", async (file, what) => {
    const run = copyOf(`checkpoint-${file}`);
    const path = join(run, "checkpoints/000003", file);
    if (what === "missing") rmSync(path);
    else flip(path, 3);
    const check = await runCli(["check", run]);
    expect(check).toMatchObject({ code: 1, stdout: expect.stringMatching(what) });
    const { code, stderr } = await resume(run);
    expect(code).toBe(1);
    expect(stderr).toMatch(/000003/);
    expect(stderr).toMatch(/[Rr]emove \S+000003 to resume from the/);
    expect(episodesIn(run)).toBe(18);
    if (file !== "optimizer.safetensors") return;
    // The remedy works, with the numbers of the damaged one.
    rmSync(join(run, "checkpoints/000003"), { recursive: true });
    expect((await resume(run)).code).toBe(0);
    expect(openRun(run, fail).metrics().slice(0, 4).map(plain)).toEqual(
      openRun(done, fail).metrics().map(plain),
    );
  });

  it("also by commands that only read it, and if an older version wrote no checksums", async () => {
    const run = copyOf("read");
    flip(join(run, "checkpoints/000003/model.safetensors"), 5000);
    const { code, stderr } = await runCli(["export", run, "--out", join(parent, "exported")]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("checksum mismatch")]);
    const old = copyOf("old");
    const folder = join(old, "checkpoints/000003");
    for (const file of ["pawl-checksums.json", "optimizer.safetensors"]) rmSync(join(folder, file));
    expect(await resume(old)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("a fresh optimiser would give other numbers"),
    });
  });
});

describe("what is missing is named, and nothing is deleted for it", () => {
  it("all checkpoints: beginning again would delete the record", async () => {
    const run = copyOf("no-checkpoints");
    rmSync(join(run, "checkpoints"), { recursive: true });
    expect(await runCli(["check", run])).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("3 updates in its record, but no checkpoint"),
    });
    const { code, stderr } = await resume(run);
    expect([code, stderr]).toEqual([1, expect.stringContaining("would begin again and delete")]);
    expect(episodesIn(run)).toBe(18);
    // The remedy begins again, and comes to the same numbers.
    rmSync(join(run, "metrics.jsonl"));
    expect((await resume(run)).code).toBe(0);
    expect(openRun(run, fail).metrics().slice(0, 4).map(plain)).toEqual(
      openRun(done, fail).metrics().map(plain),
    );
  });

  it.runIf(isWhole)("episodes and metrics: the run goes on, and says what it lacks", async () => {
    const run = copyOf("no-record");
    rmSync(join(run, "episodes.jsonl.gz"));
    rmSync(join(run, "metrics.jsonl"));
    const check = await runCli(["check", run]);
    expect(check.stdout).toContain("the episodes of updates 1–3 are missing");
    expect(check.stdout).toContain("the metrics of updates 1–3 are missing");
    const shown = await runCli(["show", run]);
    expect(shown.stderr).toContain("episodes.jsonl.gz is missing");
    expect(shown.stderr).toContain("metrics.jsonl is missing: it had 4 lines");
    const emptied = copyOf("no-episodes");
    writeFileSync(join(emptied, "episodes.jsonl.gz"), "");
    const none = await runCli(["show", emptied]);
    expect(none.stderr).toContain("holds no episodes, though there were 3 updates");
    const { code, stderr } = await resume(run);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain("the episodes of updates 1–3 are missing; the run goes on");
    expect(stderr).toContain("the metrics of updates 1–3 are missing; the run goes on");
  });

  it("the reference: by check, and by replay without a stack trace", async () => {
    const run = copyOf("no-reference");
    rmSync(join(run, "reference"), { recursive: true });
    const check = await runCli(["check", run]);
    expect(check.stdout).toContain(`${join(run, "reference")} is missing`);
    const { code, stderr } = await runCli(["replay", run]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/reference.config\.json.*restore/)]);
    expect(stderr).not.toMatch(/^ +at /m);
  });
});

describe.runIf(isWhole)("files of another run", () => {
  const other = join(parent, "other");
  beforeAll(() => trainRun({ ...config, seed: 1 }, { folder: other }));

  it.each(["checkpoints/000003", "reference"])("are refused: %s", async (folder) => {
    const run = copyOf(`other-${folder.slice(0, 3)}`);
    rmSync(join(run, folder), { recursive: true });
    cpSync(join(other, folder), join(run, folder), { recursive: true });
    const said = /is of another run|is not the one that/;
    expect(await runCli(["check", run])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(said),
    });
    expect(await resume(run)).toMatchObject({ code: 1, stderr: expect.stringMatching(said) });
    expect(episodesIn(run)).toBe(18);
  });
});

it.runIf(isWhole)("a damaged checkpoint that is not needed does not end the run", async () => {
  const run = copyOf("older");
  flip(join(run, "checkpoints/000002/state.json"), 3);
  const { code, stderr } = await resume(run);
  expect(code, stderr).toBe(0);
  expect(existsSync(join(run, "checkpoints/000004/state.json"))).toBe(true);
});

/** The numbers of a line that do not depend on the clock. */
const plain = (line: Readonly<Record<string, number>>) =>
  Object.fromEntries(
    Object.entries(line).filter(([name]) => !/seconds|Second|memory|rss/i.test(name)),
  );

describe("a manifest with another number of groups", () => {
  const edit = (run: string, groups: number): void => {
    const path = join(run, "manifest.json");
    writeFileSync(path, readFileSync(path, "utf8").replace('"groups": 2', `"groups": ${groups}`));
  };

  it("is refused because of its checksum, and nothing is cut", async () => {
    const run = copyOf("edited");
    edit(run, 1);
    const { code, stderr } = await resume(run);
    expect([code, stderr]).toEqual([1, expect.stringContaining("was changed since pawl wrote it")]);
    expect(episodesIn(run)).toBe(18);
    expect(await runCli(["check", run])).toMatchObject({ code: 1 });
    const shown = await runCli(["show", run]);
    expect(shown.stderr).toContain("was changed since pawl wrote it");
  });

  it("is refused without a checksum too, because its records do not fit", async () => {
    const run = copyOf("edited-old");
    edit(run, 1);
    const path = join(run, "manifest.json");
    writeFileSync(path, readFileSync(path, "utf8").replace(/,\s*"checksum": "\w+"/, ""));
    const { code, stderr } = await resume(run);
    expect([code, stderr]).toEqual([1, expect.stringContaining("do not fit these records")]);
    expect(episodesIn(run)).toBe(18);
  });
});

describe("damaged records", () => {
  it.runIf(isWhole)("in the middle are kept aside, and the run goes on", async () => {
    const run = copyOf("middle");
    const path = join(run, "episodes.jsonl.gz");
    const second = appends(readFileSync(path))[1]!;
    flip(path, second + 200);
    const check = await runCli(["check", run]);
    expect(check.code).toBe(1);
    expect(check.stdout).toContain("12 episodes in 4 groups; none of groups 2–3");
    const { code, stderr } = await resume(run);
    expect([code, stderr]).toEqual([0, expect.stringContaining(`${path}.damaged-${second}`)]);
    expect(episodesIn(run)).toBe(18);
    expect(existsSync(`${path}.damaged-${second}`)).toBe(true);
    expect((await runCli(["check", run])).stdout).toContain("kept aside");
  });
});

it("a changed number in the metrics is found, and kept aside when the run goes on", async () => {
  const run = copyOf("metrics");
  const path = join(run, "metrics.jsonl");
  const text = readFileSync(path, "utf8");
  // A digit of the second line: it is still JSON.
  const at = /\d/.exec(text.slice(text.indexOf("\n") + 20))!.index + text.indexOf("\n") + 20;
  writeFileSync(path, text.slice(0, at) + ((Number(text[at]) + 1) % 10) + text.slice(at + 1));
  const check = await runCli(["check", run]);
  expect(check.code).toBe(1);
  expect(check.stdout).toContain(`${path}:2: changed since it was written (checksum mismatch)`);
  const { code, stderr } = await resume(run);
  expect([code, stderr]).toEqual([0, expect.stringContaining("1 damaged lines were moved to")]);
  // What is left is whole, and so is what came after; what is lost stays known.
  const after = await runCli(["check", run]);
  expect(after.stdout).toContain("metrics: 4 lines, checksums compared");
  expect(after.stdout).toContain("the metrics of update 1 are missing");
  expect(after.stdout).not.toContain("mismatch");
});

it("a run whose folder is deleted while it trains fails, and says so", async () => {
  const folder = join(parent, "deleted");
  const training = trainRun(config, {
    folder,
    onMetrics: ({ update }) => update === 0 && rmSync(folder, { recursive: true }),
  });
  await expect(training).rejects.toThrow(/was deleted while it was being written/);
});

it("the number of cores is recorded, and another one is noticed", () => {
  const run = copyOf("cores");
  expect(readManifest(run).cores).toBe(availableParallelism());
  writeManifest(run, { ...readManifest(run), cores: 96 });
  expect(coresNotice(run, { engine: { address: "embedded" } }, 2)).toMatch(
    /on 96 cores until now, and goes on with 2.*--engine\.threads 96 keeps them/,
  );
  expect(coresNotice(run, { engine: { address: "embedded" } }, 96)).toBeUndefined();
  expect(coresNotice(run, { engine: { address: "embedded", threads: 3 } }, 2)).toBeUndefined();
});

it("check says nothing is damaged of a whole run", async () => {
  const { code, stdout } = await runCli(["check", done]);
  expect(code, stdout).toBe(0);
  expect(stdout).toContain("18 episodes in 6 groups");
  expect(stdout).toMatch(/✓ metrics: \d lines, checksums compared/);
  expect(stdout).toContain("nothing is damaged");
});
