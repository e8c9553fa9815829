/**
 * The lock of a run folder: the process that is writing to it.
 *
 * Locks are numbered files, `lock`, `lock.1`, `lock.2` …, and the highest one counts. A lock whose
 * process has died is never replaced: the next process creates the next number, which can be
 * created only once. So of several processes that see the same dead lock at the same moment, one
 * gets the folder. Removing the dead lock and creating a new one would be two operations, and a
 * late remover could remove the new one.
 *
 * A lock names its process such that another one with the same id is not mistaken for it. A process
 * on another machine or in another container cannot be seen; it counts as alive as long as it
 * touches its lock. So does one whose lock is damaged.
 */
import { randomBytes } from "node:crypto";
import {
  linkSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { isAlive, ownIdentity, type ProcessIdentity, stateOf } from "../process-alive.js";
import { RunError } from "./run-error.js";

/** How often a process touches its lock, and for how long an untouched one still counts. */
const TOUCH_MS = 2_000;
const UNTOUCHED_MS = 60_000;

/** The current lock, as it was found. */
export interface FoundLock {
  /** Its number; −1 if there is none. */
  readonly number: number;
  /** The live process that created it, in words; undefined if it is free or its process is dead. */
  readonly owner: string | undefined;
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
  const touching = setInterval(() => touch(path), TOUCH_MS).unref();
  return {
    release() {
      clearInterval(touching);
      rmSync(path, { force: true });
      for (const old of numbersIn(folder))
        if (old < number) rmSync(join(folder, nameOf(old)), { recursive: true, force: true });
    },
  };
}

const nameOf = (number: number): string => (number === 0 ? "lock" : `lock.${number}`);

function numbersIn(folder: string): number[] {
  return names(folder)
    .flatMap((name) => {
      const parts = /^lock(?:\.(\d{1,9}))?$/.exec(name);
      return parts === null ? [] : [Number(parts[1] ?? 0)];
    })
    .sort((a, b) => a - b);
}

/** A folder that somebody deleted has no locks; whoever records to it says so. */
function names(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

/** A folder that was deleted, or a disk that went away, is noticed by whoever records to it. */
function touch(path: string): void {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch {}
}

/**
 * Creates the file that names this process; false if it exists. It is never visible without the
 * name.
 */
function makeOnce(path: string): boolean {
  const draft = `${path}.${randomBytes(6).toString("hex")}.draft`;
  const content = contentOf(ownIdentity());
  try {
    writeFileSync(draft, content);
    try {
      linkSync(draft, path);
    } catch (error) {
      // Some file systems have no hard links.
      if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(codeOf(error))) throw error;
      writeFileSync(path, content, { flag: "wx" });
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

/** The process that created a lock, in words, if it is alive or may be. */
function ownerOf(path: string): string | undefined {
  let identity: LockIdentity | undefined;
  let touchedAt: number;
  try {
    identity = identityIn(path);
    touchedAt = statSync(path).mtimeMs;
  } catch (error) {
    // Released since it was listed.
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
  // Clocks of machines differ: both directions count.
  const ago = Math.abs(Date.now() - touchedAt);
  const seen = `last seen ${Math.round(ago / 1000)} s ago, and forgotten after ${UNTOUCHED_MS / 1000} s`;
  const ifTouched = (owner: string): string | undefined => (ago > UNTOUCHED_MS ? undefined : owner);
  if (identity === undefined) return ifTouched(`a process that ${path} does not name (${seen})`);
  const { pid, host } = identity;
  // Older versions wrote only the id. Our own is then that of a process before us.
  if (host === undefined) return pid !== process.pid && isAlive(pid) ? `process ${pid}` : undefined;
  const state = stateOf({ ...identity, host });
  if (state !== "unknown") return state === "alive" ? `process ${pid}` : undefined;
  return ifTouched(`process ${pid} of ${host} (another machine or container; ${seen})`);
}

type LockIdentity = Partial<ProcessIdentity> & { readonly pid: number };

/** What a lock contains: a process, and a checksum, since a flipped bit may name a dead one. */
function contentOf(identity: ProcessIdentity): string {
  return `${JSON.stringify({ ...identity, checksum: checksumOf(identity) })}\n`;
}

const checksumOf = (identity: LockIdentity): number => crc32(JSON.stringify(identity));

const isId = (pid: unknown): boolean => Number.isInteger(pid) && (pid as number) > 0;

/** The process that a lock names; undefined if it is damaged, or not written yet. */
function identityIn(path: string): LockIdentity | undefined {
  try {
    const found: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (typeof found === "number") return isId(found) ? { pid: found } : undefined;
    const { checksum, ...identity } = found as LockIdentity & { readonly checksum?: number };
    // Older versions wrote no checksum.
    const isWhole = checksum === undefined || checksum === checksumOf(identity);
    return isWhole && isId(identity.pid) ? identity : undefined;
  } catch (error) {
    // What cannot be read, such as a folder of that name, names nobody either.
    if (codeOf(error) === "ENOENT") throw error;
    return undefined;
  }
}

function takenBy(folder: string, owner = "another process"): RunError {
  return new RunError(`${folder} is being written by ${owner}: wait for it, or end it first`);
}
