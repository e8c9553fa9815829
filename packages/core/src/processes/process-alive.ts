/** Which processes live: on this machine by their id, in locks and temporary names by more than that. */
import { execFileSync } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { crc32 } from "node:zlib";

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
 * process is always 1). Linux and macOS know all of it; elsewhere host and id must do.
 */
export interface ProcessIdentity {
  readonly pid: number;
  readonly host: string;
  /** The machine, as an id that it keeps when it restarts; undefined in containers, which have none. */
  readonly machine?: string | undefined;
  /** When the machine was started, as an id. */
  readonly boot?: string | undefined;
  /** The namespace of process ids: that of the container. */
  readonly space?: string | undefined;
  /** When the process was started. */
  readonly started?: string | undefined;
}

/** The namespace of process ids that is no container's: Linux gives it a fixed number. */
const FIRST_SPACE = "pid:[4026531836]";

let own: ProcessIdentity | undefined;

/** The identity of this process. */
export function ownIdentity(): ProcessIdentity {
  if (own !== undefined) return own;
  const host = hostname();
  const space = attempt(() => readlinkSync("/proc/self/ns/pid"));
  const [machine, boot] = [machineOf(host, space), bootOf()];
  own = { pid: process.pid, host, machine, boot, space, started: startOf(process.pid) };
  return own;
}

/**
 * Whether a process lives, or `unknown` if it cannot be seen from here: on another machine, in
 * another container, or hidden.
 */
export function stateOf(one: ProcessIdentity): ProcessState {
  return judged(one, (value) => value);
}

/** Whether a process lives. */
export type ProcessState = "alive" | "dead" | "unknown";

/** An identity as part of a file's name: what is not a number becomes eight digits. */
export function tagOf({ pid, machine, boot, space, started }: ProcessIdentity): string {
  return [pid, ...[machine, boot, space, started].map((part) => short(part) ?? NONE)].join("-");
}

/** Whether the process that a tag names lives. */
export function stateOfTag(tag: string): ProcessState {
  const [pid, ...parts] = tag.split("-");
  const [machine, boot, space, started] = parts.map((part) => (part === NONE ? undefined : part));
  return judged({ pid: Number(pid), machine, boot, space, started }, short);
}

/** Judges an identity whose parts, except the process id, were written in a shorter way. */
function judged(
  one: Omit<ProcessIdentity, "host">,
  write: (part: string | undefined) => string | undefined,
): ProcessState {
  const here = ownIdentity();
  // Machines may share a name: a host's says nothing about where its processes live.
  const isHere = one.machine !== undefined && one.machine === write(here.machine);
  if (one.boot === undefined || here.boot === undefined)
    return !isHere ? "unknown" : isAlive(one.pid) ? "alive" : "dead";
  if (one.boot !== write(here.boot)) return isHere ? "dead" : "unknown";
  if (one.space !== write(here.space)) return "unknown";
  if (!isAlive(one.pid)) return "dead";
  const started = startOf(one.pid);
  if (started !== undefined) return write(started) === one.started ? "alive" : "dead";
  // It has ended meanwhile, or its system hides the processes of others.
  return isAlive(one.pid) ? "unknown" : "dead";
}

const NONE = "0";
const short = (value: string | undefined): string | undefined =>
  value === undefined ? undefined : crc32(value).toString(16).padStart(8, "0");

function machineOf(host: string, space: string | undefined): string | undefined {
  if (process.platform !== "linux") return host;
  // A container's file is its image's, which many have.
  if (space !== FIRST_SPACE) return undefined;
  const id = attempt(() => readFileSync("/etc/machine-id", "utf8"))?.trim();
  return id !== undefined && /^[\da-f]{32}$/.test(id) ? id : undefined;
}

function bootOf(): string | undefined {
  const id = attempt(() =>
    process.platform === "darwin"
      ? outputOf("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"])
      : readFileSync("/proc/sys/kernel/random/boot_id", "utf8"),
  )?.trim();
  return id !== undefined && /^[\da-f-]{36}$/i.test(id) ? id : undefined;
}

/** When a process was started; undefined if the system does not say. */
function startOf(pid: number): string | undefined {
  if (process.platform === "darwin") {
    const started = attempt(() =>
      outputOf("/bin/ps", ["-o", "lstart=", "-p", String(pid)]),
    )?.trim();
    return started === "" ? undefined : started;
  }
  // The fields after the name, which may hold blanks: the first is the state, the 20th the start.
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie has ended; only its parent has not asked how.
  return fields?.[0] === "Z" ? "ended" : fields?.[19];
}

/** What a program of the system prints, in the same words whatever the user's language and clock. */
const outputOf = (program: string, args: readonly string[]): string =>
  execFileSync(program, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    env: { LC_ALL: "C", TZ: "UTC" },
  });

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
