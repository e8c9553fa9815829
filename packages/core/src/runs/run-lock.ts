/**
 * The lock of a run folder: the process that is writing to it.
 *
 * Locks are numbered files, `lock`, `lock.1`, `lock.2` …, and the highest one counts. A lock whose
 * process has died is never replaced: the next process creates the next number, which can be
 * created only once. So of several processes that see the same dead lock at the same moment, one
 * gets the folder. Removing the dead lock and creating a new one would be two operations, and a
 * late remover could remove the new one.
 *
 * A lock names its process such that another one with the same id is not mistaken for it, so on one
 * machine the operating system says whether it lives. A process on another machine or in another
 * container cannot be seen, and neither can one whose lock is damaged: no time that passes makes it
 * dead, since clocks differ and machines sleep. It loses the folder only by force, which people must
 * ask for; and since people can be wrong, whoever holds a lock asks before every write whether it
 * still does.
 */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { sweep, temporaryName } from "../files/atomic-file.js";
import { readRegularText } from "../files/regular-file.js";
import { isAlive, ownIdentity, type ProcessIdentity, stateOf } from "../processes/process-alive.js";
import { RunError } from "./run-error.js";

/** How often a process touches its lock, only to show when it was last seen. */
const TOUCH_MS = 2_000;
/** For how long a process that cannot be seen is shown as one that writes. */
const RECENT_MS = 60_000;

/** The current lock, as it was seen. */
export interface LockState {
  /** Its number; −1 if there is none. */
  readonly number: number;
  /** The process that holds it, or may hold it; undefined if it is free or its process is dead. */
  readonly owner: LockOwner | undefined;
}

/** The process that holds a lock, or may. */
interface LockOwner {
  /** Who it is, in words. */
  readonly words: string;
  /** Its id, if it lives on this machine. */
  readonly pid?: number;
  /** Whether the operating system says that it lives; otherwise it cannot be seen from here. */
  readonly isCertain: boolean;
  /** Whether it seems to be writing now: certain, or seen within the last minute. Only to show. */
  readonly seemsActive: boolean;
}

/** A lock that was taken. */
export interface RunLock {
  /** Whether it was taken by force, from a process that may still write. */
  readonly isForced: boolean;
  /** Throws if another process has taken the folder since: whatever is written now is its. */
  require(): void;
  release(): void;
}

/** How to take a lock. */
export interface LockOptions {
  /** Take it even from a process that cannot be seen. */
  readonly force?: boolean | undefined;
  /** What was seen earlier. */
  readonly seen?: LockState;
}

/** Looks up which process is writing to the folder. */
export function findLock(folder: string): LockState {
  const number = numbersIn(folder).at(-1) ?? -1;
  return { number, owner: number < 0 ? undefined : ownerOf(join(folder, nameOf(number))) };
}

/** Refuses a folder that another process writes to, or may. */
export function requireFree(folder: string, { force, seen = findLock(folder) }: LockOptions): void {
  const { owner } = seen;
  if (owner !== undefined && (owner.isCertain || force !== true)) throw takenBy(folder, owner);
}

/** Takes the folder for this process, or says who has it. */
export function takeLock(folder: string, options: LockOptions = {}): RunLock {
  const { force = false, seen = findLock(folder) } = options;
  requireFree(folder, { force, seen });
  sweep(folder);
  const number = seen.number + 1;
  const path = join(folder, nameOf(number));
  const content = contentOf({ ...ownIdentity(), nonce: randomBytes(8).toString("hex") });
  if (!makeOnce(path, content)) throw takenBy(folder, findLock(folder).owner);
  // A process that looked long ago may have created a number below one created since.
  const others = numbersIn(folder).filter((one) => one !== number);
  const owners = others.flatMap((one) => ownerOf(join(folder, nameOf(one))) ?? []);
  const other = owners.find(({ isCertain }) => isCertain || !force);
  if (other !== undefined) {
    rmSync(path, { force: true });
    throw takenBy(folder, other);
  }
  // Without its lock the other stops before its next write.
  if (force) removeBelow(folder, number);
  const touching = setInterval(() => touch(path), TOUCH_MS).unref();
  const isLost = (): boolean =>
    textIn(path) !== content || existsSync(join(folder, nameOf(number + 1)));
  return {
    isForced: owners.length > 0,
    require() {
      if (isLost()) throw existsSync(folder) ? takenOver(folder) : deleted(folder);
    },
    release() {
      clearInterval(touching);
      if (isLost()) return;
      rmSync(path, { force: true });
      removeBelow(folder, number);
    },
  };
}

function removeBelow(folder: string, number: number): void {
  for (const old of numbersIn(folder))
    if (old < number) rmSync(join(folder, nameOf(old)), { recursive: true, force: true });
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
function makeOnce(path: string, content: string): boolean {
  const draft = temporaryName(path, "draft");
  try {
    const file = openSync(draft, "wx");
    try {
      writeFileSync(file, content);
      // After a power cut an empty lock would have to be removed by force.
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
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

/** What a lock contains; undefined if it cannot be read, or is not there. */
function textIn(path: string): string | undefined {
  try {
    return readRegularText(path);
  } catch {
    return undefined;
  }
}

/** The process that created a lock, if it is alive or may be. */
function ownerOf(path: string): LockOwner | undefined {
  let touchedAt: Date;
  try {
    touchedAt = statSync(path).mtime;
  } catch (error) {
    // Released since it was listed.
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
  const identity = identityIn(textIn(path));
  // Clocks of machines differ: both directions count.
  const ago = Math.abs(Date.now() - touchedAt.getTime());
  const seen = `last seen ${touchedAt.toISOString()}, ${inWords(ago)} ago by this machine's clock`;
  const unseen = (words: string): LockOwner => ({
    words: `${words}, ${seen}`,
    isCertain: false,
    seemsActive: ago <= RECENT_MS,
  });
  if (identity === undefined) return unseen(`a process that ${path} does not name`);
  const { pid, host, boot, started } = identity;
  const alive = (isCertain: boolean): LockOwner => ({
    words: `process ${pid}`,
    pid,
    isCertain,
    seemsActive: true,
  });
  // Older versions wrote only the id. Our own is then that of a process before us.
  if (host === undefined) return pid !== process.pid && isAlive(pid) ? alive(false) : undefined;
  const state = stateOf({ ...identity, host });
  if (state === "dead") return undefined;
  if (state === "alive") return alive(started !== undefined);
  const own = ownIdentity();
  const where =
    boot !== undefined && boot === own.boot
      ? "another container than this one"
      : host === own.host
        ? "another machine of that name, or this one before it restarted"
        : "another machine than this one";
  return unseen(`process ${pid} of ${host} (${where})`);
}

function inWords(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

type LockIdentity = Partial<ProcessIdentity> & { readonly pid: number; readonly nonce?: string };

/** What a lock contains: a process, and a checksum, since a flipped bit may name a dead one. */
function contentOf(identity: LockIdentity): string {
  return `${JSON.stringify({ ...identity, checksum: checksumOf(identity) })}\n`;
}

const checksumOf = (identity: LockIdentity): number => crc32(JSON.stringify(identity));

const isId = (pid: unknown): boolean => Number.isInteger(pid) && (pid as number) > 0;

/** The process that a lock names; undefined if it is damaged, not a file, or not written yet. */
function identityIn(text: string | undefined): LockIdentity | undefined {
  try {
    const content: unknown = JSON.parse(text ?? "");
    if (typeof content === "number") return isId(content) ? { pid: content } : undefined;
    const { checksum, ...identity } = content as LockIdentity & { readonly checksum?: number };
    // Older versions wrote no checksum.
    const isWhole = checksum === undefined || checksum === checksumOf(identity);
    return isWhole && isId(identity.pid) ? identity : undefined;
  } catch {
    return undefined;
  }
}

function takenBy(folder: string, owner?: LockOwner): RunError {
  const by = `${folder} is being written by`;
  if (owner === undefined) return new RunError(`${by} another process: wait for it`);
  const { words, pid, isCertain } = owner;
  if (isCertain) return new RunError(`${by} ${words}: wait for it, or end it first`);
  return new RunError(
    pid === undefined
      ? `${folder} may still be written by ${words}. Whether it has ended cannot be seen from here: wait for it, or end it there. If you know that it has ended, add --force-unlock.`
      : `${by} ${words}, or another program has its number now: wait for it, or end it first. If it is another program, add --force-unlock.`,
  );
}

const deleted = (folder: string): RunError =>
  new RunError(
    `${folder} was deleted while it was being written: nothing is recorded any more. Start again in another folder.`,
  );

const takenOver = (folder: string): RunError =>
  new RunError(
    `${folder} was taken over by another process, with --force-unlock, or its lock was removed: this one stops, and writes nothing more to it`,
  );
