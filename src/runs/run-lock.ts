/**
 * The lock of a run folder: the process that is writing to it.
 *
 * Locks are numbered files, `lock`, `lock.1`, `lock.2` …, and the highest one counts. A lock whose
 * process has died is never replaced: the next process creates the next number, which can be
 * created only once. So of several processes that see the same dead lock at the same moment, one
 * gets the folder. Removing the dead lock and creating a new one would be two operations, and a
 * late remover could remove the new one.
 */
import { linkSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../process-alive.js";
import { RunError } from "./run-error.js";

/** The current lock, as it was found. */
export interface FoundLock {
  /** Its number; −1 if there is none. */
  readonly number: number;
  /** The live process that created it; undefined if it is free or its process is dead. */
  readonly owner: number | undefined;
}

/** A lock that was taken. */
export interface RunLock {
  release(): void;
}

/** Looks up which process is writing to the folder. */
export function findLock(folder: string): FoundLock {
  const number = numbersIn(folder).at(-1) ?? -1;
  return { number, owner: number < 0 ? undefined : ownerOf(join(folder, nameOf(number))) };
}

/** Takes the folder for this process, or says who has it; `found` is what was seen earlier. */
export function takeLock(folder: string, found = findLock(folder)): RunLock {
  if (found.owner !== undefined) throw takenBy(folder, found.owner);
  const number = found.number + 1;
  const path = join(folder, nameOf(number));
  if (!makeOnce(path)) throw takenBy(folder, findLock(folder).owner);
  // A process that looked long ago may have created a number below one created since.
  const other = numbersIn(folder)
    .filter((one) => one !== number)
    .map((one) => ownerOf(join(folder, nameOf(one))))
    .find((owner) => owner !== undefined);
  if (other !== undefined) {
    rmSync(path, { force: true });
    throw takenBy(folder, other);
  }
  return {
    release() {
      rmSync(path, { force: true });
      for (const old of numbersIn(folder))
        if (old < number) rmSync(join(folder, nameOf(old)), { force: true });
    },
  };
}

const nameOf = (number: number): string => (number === 0 ? "lock" : `lock.${number}`);

function numbersIn(folder: string): number[] {
  return readdirSync(folder)
    .flatMap((name) => {
      const parts = /^lock(?:\.(\d+))?$/.exec(name);
      return parts === null ? [] : [Number(parts[1] ?? 0)];
    })
    .sort((a, b) => a - b);
}

/**
 * Creates the file with this process's id; false if it exists. It is never visible without the id.
 */
function makeOnce(path: string): boolean {
  const draft = `${path}.${process.pid}.draft`;
  const pid = String(process.pid);
  try {
    writeFileSync(draft, pid);
    try {
      linkSync(draft, path);
    } catch (error) {
      // Some file systems have no hard links.
      if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(codeOf(error))) throw error;
      writeFileSync(path, pid, { flag: "wx" });
    }
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "";

/** The process that created a lock, if it is alive. */
function ownerOf(path: string): number | undefined {
  let pid: number;
  try {
    pid = Number(readFileSync(path, "utf8"));
  } catch (error) {
    // Released since it was listed.
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  return isAlive(pid) ? pid : undefined;
}

function takenBy(folder: string, owner: number | undefined): RunError {
  const who = owner === undefined ? "another process" : `process ${owner}`;
  return new RunError(`${folder} is being written by ${who}: wait for it, or end it first`);
}
