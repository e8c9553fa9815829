/** Which processes live: on this machine by their id, in locks by more than that. */
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** Whether a process with this id runs on this machine. */
export function isAlive(id: number): boolean {
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    // EPERM: it is alive and belongs to another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/**
 * What tells a process from all others: ids are reused, in containers even at once (the main
 * process is always 1). Linux knows all of it; elsewhere host and id must do.
 */
export interface ProcessIdentity {
  readonly pid: number;
  readonly host: string;
  /** When the machine was started, as an id. */
  readonly boot?: string | undefined;
  /** The namespace of process ids: that of the container. */
  readonly space?: string | undefined;
  /** When the process was started, in ticks since boot. */
  readonly started?: string | undefined;
}

/** The identity of this process. */
export function ownIdentity(): ProcessIdentity {
  return {
    pid: process.pid,
    host: hostname(),
    boot: attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    space: attempt(() => readlinkSync("/proc/self/ns/pid")),
    started: startOf(process.pid),
  };
}

/**
 * Whether a process lives, or `unknown` if it cannot be seen from here: on another machine or in
 * another container.
 */
export function stateOf(one: ProcessIdentity): "alive" | "dead" | "unknown" {
  const own = ownIdentity();
  if (one.boot === undefined || own.boot === undefined)
    return one.host !== own.host ? "unknown" : isAlive(one.pid) ? "alive" : "dead";
  if (one.boot !== own.boot) return one.host === own.host ? "dead" : "unknown";
  if (one.space !== own.space) return "unknown";
  return startOf(one.pid) === one.started ? "alive" : "dead";
}

/** When a process was started: the 22nd field, counted after the name, which may hold blanks. */
function startOf(pid: number): string | undefined {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
