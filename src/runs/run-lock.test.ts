import { spawn, spawnSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { ownIdentity } from "../process-alive.js";
import { findLock, takeLock } from "./run-lock.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-lock-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const folder = (): string => mkdtempSync(join(parent, "run-"));

/** The compiled module, for other processes. */
const built = pathToFileURL("dist/src/runs/run-lock.js").href;

/** No process has this id: it is beyond what systems assign. */
const DEAD = "4194999";

it("is refused while its process lives, and free after release", () => {
  const run = folder();
  const lock = takeLock(run);
  expect(findLock(run).owner).toBe(`process ${process.pid}`);
  expect(() => takeLock(run)).toThrow(`is being written by process ${process.pid}`);
  lock.release();
  expect(readdirSync(run)).toEqual([]);
});

it("of a dead process goes to only one taker, even if the other looked before", () => {
  const run = folder();
  writeFileSync(join(run, "lock"), DEAD);
  const [early, late] = [findLock(run), findLock(run)];
  const lock = takeLock(run, { found: early });
  expect(() => takeLock(run, { found: late })).toThrow("is being written by");
  lock.release();
  expect(readdirSync(run)).toEqual([]);
});

it("is not taken by one who looked before others came and went", () => {
  const run = folder();
  writeFileSync(join(run, "lock.3"), DEAD);
  const late = findLock(run);
  takeLock(run).release();
  const now = takeLock(run);
  expect(() => takeLock(run, { found: late })).toThrow("is being written by");
  expect(findLock(run).owner).toBe(`process ${process.pid}`);
  now.release();
});

describe("a damaged lock", () => {
  const damages: readonly (readonly [string, (text: string) => string])[] = [
    ["is empty", () => ""],
    ["is cut off", (text) => text.slice(0, 30)],
    ["names another process, by a flipped bit", (text) => text.replace(/"pid":\d/, '"pid":9')],
    ["is of another host, by a flipped bit", (text) => text.replace(/"host":"./, '"host":"~')],
  ];

  it.each(damages)("that %s keeps others out while its process touches it", (_, damage) => {
    const run = folder();
    const path = join(run, "lock");
    const lock = takeLock(run);
    const text = readFileSync(path, "utf8");
    writeFileSync(path, damage(text));
    expect(readFileSync(path, "utf8")).not.toBe(text);
    expect(() => takeLock(run)).toThrow(
      `${run} is being written by a process that ${path} does not name (last seen 0 s ago, and forgotten after 60 s)`,
    );
    lock.release();
    writeFileSync(path, damage(text));
    utimesSync(path, 0, 0);
    takeLock(run).release();
    expect(readdirSync(run)).toEqual([]);
  });

  it("may be a folder, or have a number that is none", () => {
    const run = folder();
    mkdirSync(join(run, "lock"));
    expect(() => takeLock(run)).toThrow("does not name");
    utimesSync(join(run, "lock"), 0, 0);
    writeFileSync(join(run, `lock.${"9".repeat(25)}`), DEAD);
    takeLock(run).release();
    takeLock(run).release();
    expect(readdirSync(run)).toEqual([`lock.${"9".repeat(25)}`]);
  });
});

describe("a lock that names our own process id", () => {
  const own = ownIdentity();
  const before = new Date(Date.now() - 3_600_000);

  function lockOf(content: object | number, touched = new Date()): string {
    const run = folder();
    writeFileSync(join(run, "lock"), JSON.stringify(content));
    utimesSync(join(run, "lock"), touched, touched);
    return run;
  }

  it("is free if it is of an older version, or of a process before us", () => {
    takeLock(lockOf(process.pid)).release();
    // Without /proc there is no start time, and a process with this id counts as the same.
    if (own.started === undefined) return;
    takeLock(lockOf({ ...own, started: "17" })).release();
    takeLock(lockOf({ ...own, boot: "an-earlier-one" })).release();
    expect(() => takeLock(lockOf(own))).toThrow(`written by process ${process.pid}`);
  });

  it("of another container or machine counts while it is touched", () => {
    const others = [
      { ...own, host: "elsewhere", boot: own.boot === undefined ? undefined : "another" },
      ...(own.space === undefined ? [] : [{ ...own, space: "pid:[1]", host: "box" }]),
    ];
    for (const other of others) {
      expect(() => takeLock(lockOf(other))).toThrow(
        `process ${process.pid} of ${other.host} (another machine or container; last seen`,
      );
      takeLock(lockOf(other, before)).release();
    }
  });

  const inContainer = (program: string, run: string) =>
    spawnSync("unshare", ["-rpf", "--mount-proc", process.execPath, "-e", program, run], {
      encoding: "utf8",
    });
  const isPossible = inContainer("", "").status === 0;

  it.skipIf(!isPossible)("is taken in a new container, where all are process 1", () => {
    const run = folder();
    const take = `import(${JSON.stringify(built)}).then(({ takeLock }) => {
      try { takeLock(process.argv[1]); console.log("taken by " + process.pid); }
      catch (error) { console.log(error.message); }
      process.kill(process.pid, "SIGKILL");
      process.exit(9);
    });`;
    expect(inContainer(take, run).stdout).toBe("taken by 1\n");
    // The number of a namespace that has ended may be given to the next one.
    const lock = join(run, "lock");
    const { checksum: _, ...first } = JSON.parse(readFileSync(lock, "utf8"));
    writeFileSync(lock, JSON.stringify({ ...first, space: "pid:[1]" }));
    expect(inContainer(take, run).stdout).toMatch(/written by process 1 of .* last seen/);
    utimesSync(lock, before, before);
    expect(inContainer(take, run).stdout).toBe("taken by 1\n");
    expect(readdirSync(run).sort()).toEqual(["lock", "lock.1"]);
  });
});

it("of a dead process goes to one of many processes that want it at once", async () => {
  const run = folder();
  writeFileSync(join(run, "lock"), DEAD);
  const program = `
    import(${JSON.stringify(built)}).then(({ takeLock }) => {
      process.stdout.write("ready\\n");
      process.stdin.once("data", () => {
        try { takeLock(process.argv[1]); process.stdout.write("taken\\n"); }
        catch (error) { process.stdout.write(error.message.includes("being written") ? "refused\\n" : error.stack); }
      });
    });`;
  const takers = Array.from({ length: 10 }, () =>
    spawn(process.execPath, ["-e", program, run], { stdio: ["pipe", "pipe", "inherit"] }),
  );
  const said = (taker: (typeof takers)[number]) =>
    new Promise<string>((resolve) => taker.stdout.once("data", (data) => resolve(String(data))));
  await Promise.all(takers.map(said));
  const answers = takers.map(said);
  for (const taker of takers) taker.stdin.write("go\n");
  // All stay alive until all have answered, so that no lock is dead by then.
  const outcome = (await Promise.all(answers)).map((answer) => answer.trim()).sort();
  for (const taker of takers) taker.stdin.end();
  expect(outcome).toEqual([...new Array<string>(9).fill("refused"), "taken"]);
});
