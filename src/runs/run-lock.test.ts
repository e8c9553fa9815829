import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import { findLock, takeLock } from "./run-lock.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-lock-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const folder = (): string => mkdtempSync(join(parent, "run-"));

/** No process has this id: it is beyond what systems assign. */
const DEAD = "4194999";

it("is refused while its process lives, and free after release", () => {
  const run = folder();
  const lock = takeLock(run);
  expect(findLock(run).owner).toBe(process.pid);
  expect(() => takeLock(run)).toThrow(`is being written by process ${process.pid}`);
  lock.release();
  expect(readdirSync(run)).toEqual([]);
});

it("of a dead process goes to only one taker, even if the other looked before", () => {
  const run = folder();
  writeFileSync(join(run, "lock"), DEAD);
  const [early, late] = [findLock(run), findLock(run)];
  const lock = takeLock(run, early);
  expect(() => takeLock(run, late)).toThrow("is being written by");
  lock.release();
  expect(readdirSync(run)).toEqual([]);
});

it("is not taken by one who looked before others came and went", () => {
  const run = folder();
  writeFileSync(join(run, "lock.3"), DEAD);
  const late = findLock(run);
  takeLock(run).release();
  const now = takeLock(run);
  expect(() => takeLock(run, late)).toThrow("is being written by");
  expect(findLock(run).owner).toBe(process.pid);
  now.release();
});

it("of a dead process goes to one of many processes that want it at once", async () => {
  const run = folder();
  writeFileSync(join(run, "lock"), DEAD);
  const path = JSON.stringify(fileURLToPath(new URL("run-lock.ts", import.meta.url)));
  const program = `
    require("jiti").createJiti(${path}).import(${path}).then(({ takeLock }) => {
      process.stdout.write("ready\\n");
      process.stdin.once("data", () => {
        try { takeLock(process.argv[1]); process.stdout.write("taken\\n"); }
        catch (error) { process.stdout.write(error.message.includes("being written") ? "refused\\n" : error.stack); }
      });
    });`;
  const takers = Array.from({ length: 4 }, () =>
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
  expect(outcome).toEqual([...new Array<string>(3).fill("refused"), "taken"]);
}, 60_000);
