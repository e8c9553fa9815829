/** Two writers in one run folder: by clocks, by suspended processes, by damaged locks, by force. */
import { type ChildProcess, spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { some } from "@pawl/core/dose-testing.js";
import { ownIdentity } from "@pawl/core/processes/process-alive.js";
import { takeLock } from "@pawl/core/runs/run-lock.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** No machine was started with this id. */
const NEVER = "00000000-0000-0000-0000-000000000000";
const parent = mkdtempSync(join(tmpdir(), "pawl-attack-locks-"));
const made = join(parent, "made");
const children: ChildProcess[] = [];
let copies = 0;

beforeAll(async () => {
  await trainRun(tinyConfig({ updates: 1, checkpointEvery: 1, evaluation: { every: 0 } }), {
    folder: made,
  });
});
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(parent, { recursive: true, force: true });
});

function copyOfRun(): string {
  const run = join(parent, `run-${copies++}`);
  cpSync(made, run, { recursive: true });
  return run;
}

function mkdir(folder: string): string {
  mkdirSync(folder);
  return folder;
}

const resumed = (run: string, ...more: readonly string[]) =>
  runCli(["train", "--resume", run, "--updates", "2", ...more]);

/** All that a run folder holds, but for its locks. */
const contentOf = (run: string): string =>
  readdirSync(run, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(json|jsonl|gz)$/.test(name))
    .map((name) => `${name} ${readFileSync(join(run, name), "base64")}`)
    .join("\n");

const built = (path: string): string =>
  JSON.stringify(pathToFileURL(resolve("dist/packages", path)).href);

/** Makes a program believe that it runs on another machine, of the same name. */
const elsewhere = (machine: string): string => `
  const fs = require("node:fs"), read = fs.readFileSync;
  const id = require("node:crypto").createHash("md5").update(${JSON.stringify(machine)}).digest("hex");
  fs.readFileSync = (path, ...rest) => String(path).endsWith("boot_id")
    ? id.replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")
    : String(path).endsWith("machine-id") ? id : read(path, ...rest);
  require("node:module").syncBuiltinESMExports();`;

/** Starts a program; what it prints, line by line. */
function start(program: string, ...args: readonly string[]) {
  const child = spawn(process.execPath, ["-e", program, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  children.push(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => (await lines.next()).value ?? "";
  return { child, line };
}

/** Takes a lock and says so; with a line of input it says whether it still has it. */
const taker = (force: boolean): string => `
  import(${built("core/src/runs/run-lock.js")}).then(({ takeLock }) => {
    process.stdin.on("data", () => {
      try { lock.require(); console.log("holds"); } catch (error) { console.log(error.message); }
    });
    let lock;
    try { lock = takeLock(process.argv[1], { force: ${force} }); console.log("taken"); }
    catch (error) { console.log(error.message); process.exit(); }
  });`;

/** Creates a run and records to it until it cannot. */
const WRITER = `
  import(${built("core/src/runs/run-folder.js")}).then(({ createRun, finishFailed }) => {
    const run = createRun({ folder: process.argv[1], kind: "rollout", seed: 0, config: {} }, () => {});
    console.log("writes");
    let update = 0;
    const timer = setInterval(() => {
      try { run.recordMetrics({ update: update++ }); }
      catch (error) {
        clearInterval(timer);
        finishFailed(run, error, { onProblem: (message) => console.log("problem: " + message) });
        console.log(error.message);
      }
    }, 20);
  });`;

/** Starts a run when it is told to, and records a line when it is told again. */
const STARTER = `
  import(${built("core/src/runs/run-folder.js")}).then(({ createRun }) => {
    let run;
    process.stdin.on("data", () => {
      try {
        if (run === undefined)
          run = createRun({ folder: process.argv[1], kind: "rollout", seed: 0, config: {} }, () => {});
        else run.recordMetrics({ update: 0 });
        console.log("done");
      } catch (error) { console.log(error.message); }
    });
    console.log("ready");
  });`;

describe("a run folder has one writer", () => {
  const own = ownIdentity();
  const others = [
    ["another machine", { ...own, host: "box", machine: "0", boot: NEVER }],
    ["another machine of the same name", { ...own, machine: "0", boot: NEVER }],
    ["a container of the same name", { ...own, machine: undefined, boot: NEVER, space: "pid:[1]" }],
    ["another container", { ...own, host: "box", space: "pid:[1]" }],
  ] as const;
  const clocks = [
    ["now", 0],
    ["an hour ago", -3_600_000],
    ["in 1970", -Date.now()],
    ["in an hour, by its clock", 3_600_000],
  ] as const;
  const cases = others.flatMap(([where, identity]) =>
    clocks.map(([when, shift]) => [where, when, identity, shift] as const),
  );

  it.each(some(cases))("not two: the lock of %s, last seen %s", async (_, __, identity, shift) => {
    const run = copyOfRun();
    const before = contentOf(run);
    const seen = new Date(Date.now() + shift);
    writeFileSync(join(run, "lock"), JSON.stringify(identity));
    utimesSync(join(run, "lock"), seen, seen);
    for (const more of [[], ["--dry-run"], ["--out", join(parent, "copy")]]) {
      const { code, stderr } = await resumed(run, ...more);
      expect(code).not.toBe(0);
      expect(stderr).toContain(`process ${identity.pid} of ${identity.host}`);
      expect(stderr).toContain(`last seen ${seen.toISOString()}`);
      expect(stderr).toContain("add --force-unlock");
    }
    expect(contentOf(run)).toBe(before);
    expect(existsSync(join(parent, "copy"))).toBe(false);
  });

  const damages: readonly (readonly [string, (run: string) => void])[] = [
    ["that is empty", (run) => writeFileSync(join(run, "lock"), "")],
    ["of zeros", (run) => writeFileSync(join(run, "lock"), Buffer.alloc(200))],
    ["that is cut off", (run) => writeFileSync(join(run, "lock"), '{"pid":12,"host":"b')],
    [
      "with a wrong checksum",
      (run) =>
        writeFileSync(join(run, "lock"), JSON.stringify({ ...own, pid: 4194999, checksum: 1 })),
    ],
    ["that is a folder", (run) => mkdirSync(join(run, "lock"))],
  ];
  it.each(damages)("not by a lock %s", async (_, damage) => {
    const run = copyOfRun();
    damage(run);
    utimesSync(join(run, "lock"), 0, 0);
    expect((await resumed(run)).stderr).toContain("does not name");
    expect((await resumed(run, "--force-unlock", "--dry-run")).code).toBe(0);
    takeLock(run, { force: true }).release();
    expect(readdirSync(run).filter((name) => name.startsWith("lock"))).toEqual([]);
  });

  it.skipIf(process.platform === "win32")(
    "not by one that is suspended, even by force",
    async () => {
      const run = copyOfRun();
      const holder = start(taker(false), run);
      expect(await holder.line()).toBe("taken");
      holder.child.kill("SIGSTOP");
      utimesSync(join(run, "lock"), 0, 0);
      const pid = `is being written by process ${holder.child.pid}`;
      expect((await resumed(run)).stderr).toContain(pid);
      if (own.started === undefined) return;
      expect((await resumed(run, "--force-unlock")).stderr).toContain(pid);
      holder.child.kill("SIGKILL");
      await new Promise((ended) => holder.child.on("exit", ended));
      expect((await resumed(run)).code).toBe(0);
    },
  );

  it("not by a process id that another process has now", async () => {
    if (own.started === undefined) return;
    const run = copyOfRun();
    writeFileSync(join(run, "lock"), JSON.stringify({ ...own, started: "1" }));
    expect((await resumed(run, "--dry-run")).code).toBe(0);
  });

  it("not after one was taken over by force: the first stops before its next write", async () => {
    const run = join(parent, "taken");
    const writer = start(WRITER, run);
    expect(await writer.line()).toBe("writes");
    const refused = start(elsewhere("box") + taker(false), run);
    expect(await refused.line()).toContain("may still be written by process");
    const second = start(elsewhere("box") + taker(true), run);
    expect(await second.line()).toBe("taken");
    expect(await writer.line()).toContain(`${run} was taken over by another process`);
    const after = contentOf(run);
    expect(JSON.parse(readFileSync(join(run, "manifest.json"), "utf8")).status).toBe("running");
    second.child.stdin!.write("\n");
    expect(await second.line()).toBe("holds");
    expect(contentOf(run)).toBe(after);
  });

  it("not by several that use force at the same moment", async () => {
    const run = copyOfRun();
    writeFileSync(join(run, "lock"), JSON.stringify(others[0][1]));
    const takers = Array.from({ length: 6 }, (_, i) =>
      start(elsewhere(`machine-${i}`) + taker(true), run),
    );
    const answers = await Promise.all(takers.map(({ line }) => line()));
    const holders = takers.filter((_, i) => answers[i] === "taken");
    expect(holders.length).toBeGreaterThan(0);
    for (const { child } of holders) child.stdin!.write("\n");
    const now = await Promise.all(holders.map(({ line }) => line()));
    expect(now.filter((answer) => answer === "holds")).toHaveLength(1);
  });

  const begun: readonly (readonly [string, (run: string) => void])[] = [
    ["that is not there", () => undefined],
    ["where a start was killed", (run) => writeFileSync(join(mkdir(run), "lock"), "4194999")],
  ];
  it.each(begun)("not by several that start at the same moment in a folder %s", async (_, make) => {
    const run = join(parent, `begun-${copies++}`);
    make(run);
    const starters = Array.from({ length: 5 }, () => start(STARTER, run));
    const all = async (some: typeof starters): Promise<readonly string[]> =>
      Promise.all(some.map(({ line }) => line()));
    await all(starters);
    for (const { child } of starters) child.stdin!.write("\n");
    const answers = await all(starters);
    const writers = starters.filter((_, i) => answers[i] === "done");
    for (const { child } of writers) child.stdin!.write("\n");
    expect(await all(writers), answers.join("\n")).toEqual(["done"]);
  });

  it("not by force without a run to resume", async () => {
    const { code, stderr } = await runCli(["train", "--force-unlock", "--dry-run"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("nothing to unlock")]);
  });
});
