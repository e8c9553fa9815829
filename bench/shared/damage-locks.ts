/** Locks that processes left in a run folder, whole and damaged. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Random } from "../../src/random.js";
import { takeLock } from "../../src/runs/run-lock.js";
import type { Damage } from "./one-damage.js";

/** The lock of this process, which lives; it is not touched again. */
function ownLock(run: string): Buffer {
  const lock = takeLock(run);
  const bytes = readFileSync(join(run, "lock"));
  lock.release();
  return bytes;
}

/** The lock of a process that has ended without releasing it. */
function deadLock(run: string): Buffer {
  const built = pathToFileURL(resolve("dist/src/runs/run-lock.js")).href;
  const take = `import(${JSON.stringify(built)}).then(({ takeLock }) => takeLock(process.argv[1]))`;
  spawnSync(process.execPath, ["-e", take, run], { stdio: "inherit" });
  return readFileSync(join(run, "lock"));
}

type Change = (bytes: Buffer) => Buffer;

/** Damage to a lock. */
function changes(flips: number, random: Random): readonly (readonly [string, Change])[] {
  const flip =
    (at: number, bit: number): Change =>
    (bytes) => {
      bytes[at % bytes.length]! ^= 1 << bit;
      return bytes;
    };
  return [
    ["whole", (bytes) => bytes],
    ["empty", () => Buffer.alloc(0)],
    ["half", (bytes) => bytes.subarray(0, bytes.length >> 1)],
    ["zeros", (bytes) => bytes.fill(0)],
    ...Array.from({ length: flips }, (): readonly [string, Change] => {
      const [at, bit] = [random.int(2 ** 16), random.int(8)];
      return [`bit ${bit} of byte ${at}, modulo its length`, flip(at, bit)];
    }),
  ];
}

/** Whoever holds a lock keeps others out; nobody else does. */
export function lockDamages(flips: number, random: Random): readonly Damage[] {
  const kind = "lock";
  const file = "lock";
  const hourAgo = Date.now() / 1000 - 3600;
  const write = (run: string, bytes: Buffer | string, name = file): string => {
    writeFileSync(join(run, name), bytes);
    return join(run, name);
  };
  return [
    ...changes(flips, random).flatMap(([what, change]): readonly Damage[] => [
      {
        ...{ kind, file, what: `of a process that lives: ${what}`, isHeld: true },
        apply: (run) => void write(run, change(ownLock(run))),
      },
      {
        ...{ kind, file, what: `of a process that died an hour ago: ${what}` },
        // A lock that names nobody may be anybody's.
        mayRefuse: what !== "whole",
        apply: (run) => utimesSync(write(run, change(deadLock(run))), hourAgo, hourAgo),
      },
    ]),
    {
      ...{ kind, file, what: "of a process that has just died" },
      apply: (run) => void deadLock(run),
    },
    {
      ...{ kind, file, what: "of a dead process, of an older version" },
      apply: (run) => void write(run, "4194999"),
    },
    {
      ...{ kind, file, what: "of a process that lives, below that of a dead one", isHeld: true },
      apply(run) {
        const own = ownLock(run);
        deadLock(run);
        renameSync(join(run, file), join(run, "lock.5"));
        write(run, own);
      },
    },
    {
      ...{ kind, file, what: "with a number beyond all" },
      apply: (run) => void write(run, "4194999", "lock.99999999999999999999999"),
    },
    {
      ...{ kind, file, what: "is a folder", mayRefuse: true },
      apply: (run) => void mkdirSync(join(run, file)),
    },
  ];
}
