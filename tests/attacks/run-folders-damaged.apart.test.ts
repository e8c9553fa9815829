/** Run folders whose files are pipes, devices, bombs or gone, and what killed writers leave behind. */
import "@pawl/pawl/cli/all-worlds.js";
import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { crc32, deflateRawSync, gzipSync } from "node:zlib";
import { isWhole, some } from "@pawl/core/dose-testing.js";
import { writeFileAtomicallySync } from "@pawl/core/files/atomic-file.js";
import { gunzipWithin } from "@pawl/core/files/inflate.js";
import { ownIdentity, tagOf } from "@pawl/core/processes/process-alive.js";
import { openRecordWriter, readRecords } from "@pawl/core/runs/record-file.js";
import { packMember } from "@pawl/core/runs/record-member.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const parent = mkdtempSync(join(tmpdir(), "pawl-attack-damaged-"));
const made = join(parent, "made");
const windows = process.platform === "win32";
let copies = 0;

beforeAll(async () => {
  const config = tinyConfig({
    ...{ updates: 2, checkpointEvery: 1, stopOn: [] },
    evaluation: { every: 1, tasks: 1, splits: ["valid_seen"] },
  });
  await trainRun(config, { folder: made });
});
afterAll(() => rmSync(parent, { recursive: true, force: true }));

function copyOfRun(): string {
  const run = join(parent, `run-${copies++}`);
  cpSync(made, run, { recursive: true });
  return run;
}

/** A command in a process of its own, which is killed if it hangs. */
function pawl(...args: readonly string[]) {
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    [resolve("dist/lib/main.js"), ...args],
    {
      encoding: "utf8",
      timeout: 120_000,
      killSignal: "SIGKILL",
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  return { status, signal, output: stdout + stderr };
}

/** Puts something else in the place of a file. */
function replace(path: string, by: "pipe" | "device"): string {
  rmSync(path, { force: true });
  if (by === "pipe") execFileSync("mkfifo", [path]);
  else symlinkSync("/dev/zero", path);
  return path;
}

describe.skipIf(windows)("a pipe or a device in the place of a file is refused by name", () => {
  const files: readonly (readonly [string, string, (run: string) => readonly string[]])[] = [
    ["manifest.json", "pipe", (run) => ["show", run]],
    ["manifest.json", "device", (run) => ["runs", join(run, "..")]],
    ["episodes.jsonl.gz", "pipe", (run) => ["show", run]],
    ["episodes.jsonl.gz", "device", (run) => ["train", "--resume", run, "--updates", "3"]],
    ["metrics.jsonl", "pipe", (run) => ["report", run, "--no-predictions", "--out", `${run}.html`]],
    ["metrics.crc32", "pipe", (run) => ["check", run]],
    ["alarms.jsonl", "pipe", (run) => ["train", "--resume", run, "--updates", "3", "--dry-run"]],
    ["checkpoints/000002/state.json", "pipe", (run) => ["check", run]],
    ["checkpoints/000002/pawl-checksums.json", "device", (run) => ["check", run]],
    ["checkpoints/000002/model.safetensors", "pipe", (run) => ["eval", "--checkpoint", run]],
    ["tokenizer/tokenizer.json", "pipe", (run) => ["export", run, "--out", `${run}-model`]],
  ];
  it.each(some(files))("%s as a %s", (file, by, command) => {
    // In a folder of its own, as pawl runs reads all there are.
    const run = join(parent, `alone-${copies++}`, "run");
    cpSync(made, run, { recursive: true });
    replace(join(run, file), by as "pipe" | "device");
    const { signal, output } = pawl(...command(run));
    expect(signal, output).toBeNull();
    // A device is here by a link, which a run may not have without its user's word.
    const isDevice = output.includes(`${file} leads to /dev/`);
    if (!isDevice) expect(output).toContain(join(run, file));
    if (!isDevice)
      expect(output).toContain(by === "pipe" ? "it is a pipe, not a file" : "it is a device");
    expect(output).not.toMatch(/^\s+at .*:\d+:\d+/m);
  });

  it.each(some(["config.json", "config.yaml", "config.ts"]))("%s as a pipe", (name) => {
    const path = replace(join(parent, name), "pipe");
    const { status, output } = pawl("train", "--config", path, "--dry-run");
    expect([status, output]).toEqual([2, expect.stringContaining(`${path}: it is a pipe`)]);
  });

  it.each(some(["model.safetensors", "config.json", "tokenizer.json"]))(
    "%s of a model as a pipe",
    (name) => {
      const model = join(parent, `model-${copies++}`);
      cpSync(join(made, "reference"), model, { recursive: true });
      cpSync(join(made, "tokenizer"), model, { recursive: true });
      rmSync(join(model, "pawl-checksums.json"));
      const path = replace(join(model, name), "pipe");
      const out = join(parent, `from-${copies++}`);
      const { signal, output } = pawl("train", "--model.start", model, "--quick", "--out", out);
      expect(signal, output).toBeNull();
      expect(output).toContain(`${path}: it is a pipe, not a file`);
    },
  );

  it("a GGUF file as a pipe", () => {
    const path = replace(join(parent, "model.gguf"), "pipe");
    const { signal, output } = pawl("model", "info", path);
    expect([signal, output]).toEqual([null, expect.stringContaining(path)]);
  });
});

/** A member of a record file that inflates to one text of so many blanks, with a right checksum. */
function bomb(bytes: number): Buffer {
  const content = Buffer.alloc(bytes, " ");
  content.write('"');
  content.write('"\n', bytes - 2);
  const body = deflateRawSync(content, { level: 9 });
  const header = packMember("{}").subarray(0, 20);
  header.writeUInt32LE(28 + body.length, 16);
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(crc32(content), 0);
  trailer.writeUInt32LE(bytes, 4);
  return Buffer.concat([header, body, trailer]);
}

describe("what inflates a thousandfold is read within a budget", () => {
  const memory = (): number => process.memoryUsage().rss / 2 ** 20;
  const problems: string[] = [];
  const read = (path: string): number => {
    let count = 0;
    problems.length = 0;
    for (const _ of readRecords(path, ({ message }) => problems.push(message))) count++;
    return count;
  };

  it.runIf(isWhole)("one record of 400 MB is left out, and those around it are read", () => {
    const path = join(parent, "one.jsonl.gz");
    const one = packMember('{"n":1}\n');
    writeFileSync(path, Buffer.concat([one, bomb(400 * 2 ** 20), one]));
    const before = memory();
    expect(read(path)).toBe(2);
    expect(problems).toEqual([expect.stringContaining("damaged")]);
    expect(memory() - before).toBeLessThan(200);
  });

  it("many records of 15 MB each are refused together", () => {
    const path = join(parent, "many.jsonl.gz");
    writeFileSync(path, Buffer.concat(new Array<Buffer>(60).fill(bomb(15 * 2 ** 20))));
    expect(() => read(path)).toThrow(`${path}: its records inflate to more than 250 times`);
  });

  it.runIf(isWhole)("many that are damaged are one stretch of damage", () => {
    const path = join(parent, "beginnings.jsonl.gz");
    const one = bomb(15 * 2 ** 20);
    one[one.length - 8]! ^= 1;
    writeFileSync(path, Buffer.concat(new Array<Buffer>(20).fill(one)));
    expect(read(path)).toBe(0);
    expect(problems).toHaveLength(1);
  });

  it("in a run folder, show and check say so and end", async () => {
    const run = copyOfRun();
    const path = join(run, "episodes.jsonl.gz");
    writeFileSync(path, Buffer.concat([readFileSync(path), bomb(400 * 2 ** 20)]));
    expect((await runCli(["show", run])).stderr).toContain(path);
    expect(await runCli(["check", run])).toMatchObject({ code: 1 });
  });

  it.runIf(isWhole)("a data file of gzip is refused", () => {
    expect(() => gunzipWithin(gzipSync(Buffer.alloc(100 * 2 ** 20)))).toThrow(
      /more than 250 times/,
    );
  });

  it.runIf(isWhole)("our own records are never such, however regular they are", () => {
    const path = join(parent, "regular.jsonl.gz");
    const writer = openRecordWriter(path, () => undefined);
    writer.append([{ text: "x".repeat(40 * 2 ** 20) }]);
    writer.close();
    expect(read(path)).toBe(1);
    expect(problems).toEqual([]);
  });
});

describe("kills leave no temporary files that nobody removes", () => {
  const dead = tagOf({ ...ownIdentity(), pid: 4194999 });
  const live = tagOf(ownIdentity());
  const elsewhere = tagOf({ ...ownIdentity(), machine: "another", boot: "another" });

  it("beside any file, at the next write of another process; not those of a live one", () => {
    const folder = mkdtempSync(join(parent, "left-"));
    for (const tag of [dead, live, elsewhere]) {
      writeFileSync(join(folder, `file.${tag}.01234567.tmp`), "");
      mkdirSync(join(folder, `folder.${tag}.01234567.partial`));
    }
    writeFileAtomicallySync(join(folder, "file"), "content");
    const left = [live, elsewhere].flatMap((tag) => [
      `file.${tag}.01234567.tmp`,
      `folder.${tag}.01234567.partial`,
    ]);
    expect(readdirSync(folder).sort()).toEqual(["file", ...left].sort());
  });

  it("in a run, when it is resumed, whoever wrote them", async () => {
    const run = copyOfRun();
    const left = [
      `manifest.json.${elsewhere}.01234567.tmp`,
      "metrics.jsonl.0123456789ab.tmp",
      "episodes.jsonl.gz.mending",
      `lock.${dead}.01234567.draft`,
      "triplets.jsonl.gz.tmp",
    ];
    for (const name of [...left, "notes.tmp"]) writeFileSync(join(run, name), "");
    mkdirSync(join(run, "checkpoints", "000002.tmp"));
    writeFileSync(join(run, "checkpoints", "000002.tmp", "model.safetensors"), "");
    expect((await runCli(["train", "--resume", run, "--updates", "2"])).code).toBe(0);
    const all = readdirSync(run, { recursive: true, encoding: "utf8" });
    expect(all.filter((name) => /\.(tmp|draft|mending|partial)$|lock/.test(name))).toEqual([
      "notes.tmp",
    ]);
  });

  it("before there was a manifest: the same command starts again", async () => {
    const out = join(parent, "begun");
    mkdirSync(out);
    writeFileSync(join(out, "lock"), JSON.stringify({ ...ownIdentity(), pid: 4194999 }));
    writeFileSync(join(out, "episodes.jsonl.gz"), "");
    writeFileSync(join(out, `manifest.json.${dead}.01234567.tmp`), "{");
    const config = join(parent, "again.json");
    writeFileSync(config, JSON.stringify(tinyConfig({ updates: 0, evaluation: { every: 0 } })));
    expect(await runCli(["train", "--config", config, "--out", out])).toMatchObject({ code: 0 });
    expect(existsSync(join(out, "manifest.json"))).toBe(true);
  });
});

describe("show and report say what they leave out of a damaged run folder", () => {
  const cut = (run: string, file: string, keep: (bytes: Buffer) => number): void => {
    const bytes = readFileSync(join(run, file));
    writeFileSync(join(run, file), bytes.subarray(0, keep(bytes)));
  };
  const damages: readonly (readonly [string, (run: string) => void, string])[] = [
    [
      "episodes that end at the border of an update",
      (run) => cut(run, "episodes.jsonl.gz", (bytes) => bytes.readUInt32LE(16)),
      "the episodes of update 2 are missing",
    ],
    [
      "metrics that end at a line, with their checksums",
      (run) => {
        cut(run, "metrics.jsonl", (bytes) => bytes.indexOf("\n", bytes.indexOf("\n") + 1) + 1);
        rmSync(join(run, "metrics.crc32"));
      },
      "the metrics of update 2 are missing",
    ],
    [
      "no episodes",
      (run) => rmSync(join(run, "episodes.jsonl.gz")),
      "episodes.jsonl.gz is missing",
    ],
    ["no metrics", (run) => rmSync(join(run, "metrics.jsonl")), "metrics.jsonl is missing"],
  ];
  it.each(some(damages))("%s", async (_, damage, words) => {
    const run = copyOfRun();
    damage(run);
    expect((await runCli(["show", run])).stderr).toContain(words);
    const report = ["report", run, "--no-predictions", "--out", `${run}.html`];
    expect((await runCli(report)).stderr).toContain(words);
  });

  it("a checkpoint that cannot be read", async () => {
    const run = copyOfRun();
    writeFileSync(join(run, "checkpoints", "000002", "state.json"), "{");
    expect((await runCli(["show", run])).stderr).toContain("state.json");
  });

  it("predictions of weights that are damaged", async () => {
    const run = copyOfRun();
    const path = join(run, "reference", "model.safetensors");
    const bytes = readFileSync(path);
    bytes[bytes.length - 1]! ^= 1;
    writeFileSync(path, bytes);
    const { code, stderr } = await runCli(["report", run, "--out", `${run}.html`]);
    expect([code, stderr]).toEqual([0, expect.stringContaining("there are no predictions")]);
  });
});

describe("a dry run of a resume refuses what the resume refuses", () => {
  const damages: readonly (readonly [string, (run: string) => void])[] = [
    [
      "an edited manifest",
      (run) => {
        const path = join(run, "manifest.json");
        writeFileSync(path, readFileSync(path, "utf8").replace('"groups": 2', '"groups": 3'));
      },
    ],
    ["no checkpoints", (run) => rmSync(join(run, "checkpoints"), { recursive: true })],
    [
      "a damaged checkpoint",
      (run) => writeFileSync(join(run, "checkpoints", "000002", "model.safetensors"), ""),
    ],
    [
      "no optimiser",
      (run) => {
        for (const file of ["optimizer.safetensors", "pawl-checksums.json"])
          rmSync(join(run, "checkpoints", "000002", file));
      },
    ],
    ["no reference", (run) => rmSync(join(run, "reference"), { recursive: true })],
    ["a damaged tokenizer", (run) => writeFileSync(join(run, "tokenizer", "tokenizer.json"), "{")],
    [
      "a lock of elsewhere",
      (run) =>
        writeFileSync(
          join(run, "lock"),
          JSON.stringify({ ...ownIdentity(), machine: "b", boot: "b", host: "box" }),
        ),
    ],
    [
      "records of something else",
      (run) =>
        writeFileSync(
          join(run, "episodes.jsonl.gz"),
          "a letter to my aunt, not a record of episodes",
        ),
    ],
  ];
  it.each(some(damages))("%s", async (_, damage) => {
    const run = copyOfRun();
    damage(run);
    const resume = ["train", "--resume", run, "--updates", "3"];
    const dry = await runCli([...resume, "--dry-run"]);
    const real = await runCli(resume);
    expect(real.code).not.toBe(0);
    expect(dry.code, dry.stdout).not.toBe(0);
    expect(dry.stderr).toContain(run);
  });

  it("settings that cannot change, and fewer updates than there are", async () => {
    const run = copyOfRun();
    for (const change of [
      ["--groups", "3"],
      ["--updates", "1"],
    ]) {
      const dry = await runCli(["train", "--resume", run, ...change, "--dry-run"]);
      expect(dry.code).not.toBe(0);
    }
    expect((await runCli(["train", "--resume", run, "--updates", "3", "--dry-run"])).code).toBe(0);
  });

  it("an --out that is taken", async () => {
    const run = copyOfRun();
    const resume = ["train", "--resume", run, "--out", made, "--dry-run"];
    expect((await runCli(resume)).stderr).toContain(`${made} is not empty`);
    const config = join(parent, "taken.json");
    writeFileSync(config, JSON.stringify(tinyConfig()));
    const start = ["train", "--config", config, "--out", made, "--dry-run"];
    expect((await runCli(start)).stderr).toContain("already holds a run");
  });
});
