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
import { ownIdentity, type ProcessIdentity, tagOf } from "../processes/process-alive.js";
import { findLock, takeLock } from "./run-lock.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-lock-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const folder = (): string => mkdtempSync(join(parent, "run-"));

/** The compiled module, for other processes. */
const built = pathToFileURL("dist/packages/core/src/runs/run-lock.js").href;

/** No process has this id: it is beyond what systems assign. */
const DEAD = "4194999";

/** Whether this system tells processes with the same id apart. */
const IS_EXACT = ownIdentity().started !== undefined;

it("is refused while its process lives, and free after release", () => {
  const run = folder();
  const lock = takeLock(run);
  expect(findLock(run).owner).toMatchObject({ pid: process.pid, isCertain: IS_EXACT });
  expect(() => takeLock(run)).toThrow(`is being written by process ${process.pid}`);
  lock.release();
  expect(readdirSync(run)).toEqual([]);
});

it("of a dead process goes to only one taker, even if the other looked before", () => {
  const run = folder();
  writeFileSync(join(run, "lock"), DEAD);
  const [early, late] = [findLock(run), findLock(run)];
  const lock = takeLock(run, { seen: early });
  expect(() => takeLock(run, { seen: late })).toThrow("is being written by");
  lock.release();
  expect(readdirSync(run)).toEqual([]);
});

it("is not taken by one who looked before others came and went", () => {
  const run = folder();
  writeFileSync(join(run, "lock.3"), DEAD);
  const late = findLock(run);
  takeLock(run).release();
  const now = takeLock(run);
  expect(() => takeLock(run, { seen: late })).toThrow("is being written by");
  expect(findLock(run).owner?.pid).toBe(process.pid);
  now.release();
});

describe("a damaged lock", () => {
  const damages: readonly (readonly [string, (text: string) => string])[] = [
    ["is empty", () => ""],
    ["is cut off", (text) => text.slice(0, 30)],
    [
      "names another process, by a flipped bit",
      (text) => text.replace(/"pid":(\d)/, (_, digit) => `"pid":${digit === "9" ? 8 : 9}`),
    ],
    ["is of another host, by a flipped bit", (text) => text.replace(/"host":"./, '"host":"~')],
  ];

  it.each(damages)(
    "that %s keeps others out, however old it is, until they use force",
    (_, damage) => {
      const run = folder();
      const path = join(run, "lock");
      const lock = takeLock(run);
      const text = readFileSync(path, "utf8");
      lock.release();
      writeFileSync(path, damage(text));
      expect(readFileSync(path, "utf8")).not.toBe(text);
      utimesSync(path, 0, 0);
      expect(() => takeLock(run)).toThrow(
        `${run} may still be written by a process that ${path} does not name, last seen 1970-01-01T00:00:00.000Z`,
      );
      takeLock(run, { force: true }).release();
      expect(readdirSync(run)).toEqual([]);
    },
  );

  it("may be a folder, or have a number that is none", () => {
    const run = folder();
    mkdirSync(join(run, "lock"));
    expect(() => takeLock(run)).toThrow("does not name");
    writeFileSync(join(run, `lock.${"9".repeat(25)}`), DEAD);
    takeLock(run, { force: true }).release();
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
    if (own.machine !== undefined) takeLock(lockOf({ ...own, boot: "an-earlier-one" })).release();
    expect(() => takeLock(lockOf(own))).toThrow(`written by process ${process.pid}`);
  });

  it("of another container or machine counts, whatever the clocks say, until force is used", () => {
    const others: readonly (readonly [ProcessIdentity, string])[] = [
      [{ ...own, host: "box", machine: "b", boot: own.boot && "another" }, "another machine than"],
      [{ ...own, machine: "b", boot: own.boot && "another" }, "another machine of that name, or"],
      // A container, which is not known by any id that it keeps.
      [{ ...own, machine: undefined, boot: own.boot && "another" }, "another machine of that name"],
      ...(own.space === undefined
        ? []
        : [[{ ...own, space: "pid:[1]", host: "box" }, "another container than"] as const]),
    ];
    for (const [other, where] of others)
      for (const touched of [new Date(), before, new Date(0), new Date(Date.now() + 3_600_000)]) {
        const run = lockOf(other, touched);
        expect(() => takeLock(run)).toThrow(
          `may still be written by process ${process.pid} of ${other.host} (${where}`,
        );
        expect(() => takeLock(run)).toThrow(`last seen ${touched.toISOString()}`);
        expect(() => takeLock(run)).toThrow("add --force-unlock");
        const lock = takeLock(run, { force: true });
        expect(lock.isForced).toBe(true);
        lock.release();
        expect(readdirSync(run)).toEqual([]);
      }
  });

  it.skipIf(!IS_EXACT)("is not taken by force from a process that lives", () => {
    expect(() => takeLock(lockOf(own), { force: true })).toThrow(/: wait for it, or end it first$/);
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
    utimesSync(lock, before, before);
    expect(inContainer(take, run).stdout).toMatch(
      /written by process 1 of .*container.* last seen/,
    );
    const byForce = take.replace("process.argv[1]", "process.argv[1], { force: true }");
    expect(inContainer(byForce, run).stdout).toBe("taken by 1\n");
    expect(readdirSync(run)).toEqual(["lock.1"]);
  });
});

it("that was taken by force stops its holder before the next write", () => {
  const run = folder();
  const first = takeLock(run);
  first.require();
  const elsewhere = { ...ownIdentity(), machine: "elsewhere", boot: "another" };
  // As the second machine sees it.
  writeFileSync(join(run, "lock"), JSON.stringify(elsewhere));
  expect(() => first.require()).toThrow(`${run} was taken over by another process`);
  const second = takeLock(run, { force: true });
  expect(() => first.require()).toThrow("was taken over");
  first.release();
  second.require();
  second.release();
  expect(() => second.require()).toThrow("was taken over");
  rmSync(run, { recursive: true });
  expect(() => second.require()).toThrow(`${run} was deleted while it was being written`);
});

it("leaves no draft of a process that was killed", () => {
  const run = folder();
  const dead = tagOf({ ...ownIdentity(), pid: Number(DEAD) });
  writeFileSync(join(run, `lock.${dead}.01234567.draft`), "");
  writeFileSync(join(run, `lock.${tagOf(ownIdentity())}.01234567.draft`), "");
  takeLock(run).release();
  expect(readdirSync(run)).toHaveLength(1);
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
