/**
 * Calls to a process of its own, for code that may loop for ever or take all memory: a thread that
 * runs out of memory can end its whole process, whatever its limits.
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { builtFile, type Caller, createCaller, type Fail, type Port } from "./calls.js";

// Ends the processes of this one if it cannot do so itself: after SIGKILL, say. One small process
// waits for this one's end (its standard input closes) and then kills those that are still listed.

const SCRIPT = `
const listed = new Set();
let rest = "";
process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\\n");
  rest = lines.pop();
  for (const line of lines)
    if (line[0] === "+") listed.add(line.slice(1));
    else listed.delete(line.slice(1));
});
process.stdin.on("end", () => {
  for (const id of listed) try { process.kill(Number(id), "SIGKILL"); } catch {}
});
`;

let guardian: ChildProcess | undefined;

function tell(line: string): void {
  if (guardian === undefined || guardian.exitCode !== null) {
    guardian = spawn(process.execPath, ["-e", SCRIPT], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    guardian.on("error", () => undefined);
    guardian.stdin!.on("error", () => undefined);
    // It must not keep this process alive.
    guardian.unref();
    (guardian.stdin as unknown as { unref?(): void }).unref?.();
  }
  guardian.stdin!.write(`${line}\n`);
}

/** Has a process (or, by a negative number, a group of them) killed when this one ends. */
export const guard = (id: number): void => tell(`+${id}`);

/** Takes it off the list. */
export const unguard = (id: number): void => tell(`-${id}`);

/** How often the memory of a working process is looked at. */
const LOOK_MS = 50;
const MEGABYTE = 2 ** 20;
/** What V8 writes when its heap is full, before it ends the process. */
const HEAP_IS_FULL = /<--- Last few GCs|FATAL ERROR|Fatal JavaScript|# Fatal error/;

/** A process to start. */
export interface Process {
  /** The name of its entry in packaging/join.js. */
  readonly entry: string;
  /** What works in it, for errors: `the world`. */
  readonly what: string;
  /** Megabytes that it may take; `name` is the setting. */
  readonly memory: { readonly megabytes: number; readonly name: string };
  readonly fail: Fail;
  /** Is told when it has ended, for whatever reason. */
  onGone?(): void;
}

/** Starts a process. */
export function startProcess({ entry, what, memory, fail, onGone }: Process): Caller {
  const { megabytes, name } = memory;
  const child = fork(builtFile(entry), [], {
    // The heap's own limit is for systems where nobody looks at the memory.
    execArgv: [`--max-old-space-size=${megabytes}`],
    serialization: "advanced",
    stdio: ["ignore", "inherit", "pipe", "ipc"],
  });
  const id = child.pid;
  if (id !== undefined) guard(id);
  let why: string | undefined;
  const tooMuch = `${what} took more than ${name}, ${megabytes} MB`;
  child.stderr!.on("data", (chunk: Buffer) => {
    if (HEAP_IS_FULL.test(chunk.toString())) why ??= tooMuch;
    if (why === undefined) process.stderr.write(chunk);
  });
  /** Whether this process lives until the other one has answered or ended. */
  const hold = (isHeld: boolean): void => {
    for (const part of [child, child.channel, child.stderr as unknown as Held])
      if (isHeld) part?.ref?.();
      else part?.unref?.();
  };
  const kill = (): void => void child.kill("SIGKILL");
  let looking: NodeJS.Timeout | undefined;
  const look = (): void => {
    if (id === undefined || residentOf(id) <= megabytes * MEGABYTE) return;
    why ??= tooMuch;
    kill();
  };
  const closed = new Promise<void>((done) => child.once("close", () => done()));
  const { caller, answered, lost } = createCaller(
    {
      send: (message) => void child.send(message, () => undefined),
      work: (isWorking) => {
        clearInterval(looking);
        if (isWorking) looking = setInterval(look, LOOK_MS).unref();
        hold(isWorking);
      },
      end: async () => {
        hold(true);
        kill();
        await closed;
      },
    },
    fail,
  );
  child.on("message", answered);
  child.once("error", (error) => lost(fail(`${what} could not be started: ${error.message}`)));
  // Its last words have come by now.
  child.once("close", (code, signal) => {
    if (id !== undefined) unguard(id);
    lost(fail(why ?? `${what} ended its process, with ${signal ?? code}`));
    onGone?.();
  });
  return caller;
}

interface Held {
  ref?(): void;
  unref?(): void;
}

/** The memory of a process; 0 where the system does not say. */
function residentOf(id: number): number {
  try {
    const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${id}/status`, "utf8"))?.[1];
    return Number(kilobytes ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** A process's own end. */
export function processPort(): Port {
  if (process.send === undefined) throw new Error("this file is started by another process");
  // Ctrl-C goes to all processes of a terminal; the one that started this one decides.
  process.on("SIGINT", () => undefined);
  process.once("disconnect", () => process.exit());
  return {
    onMessage: (listener) => void process.on("message", listener),
    send: (message) => void process.send!(message, undefined, undefined, () => undefined),
  };
}
