/**
 * A machine on which command lines are run one after the other, each by a fresh bash that begins in
 * the folder where the last one ended.
 */
import { createRandom, mixSeed } from "@pawl/core/random.js";
import { programs } from "../commands/programs.js";
import * as files from "./file-system.js";
import { cloneFileSystem, createFileSystem, type FileSystem } from "./inodes.js";
import { runner, within } from "./interpreter.js";
import { cloneMachine, type Machine, Stopped } from "./machine.js";
import { environment, type Shell, type Variable } from "./shell.js";
import { nothing, type Stream } from "./streams.js";

/** What a command line may use. */
export interface CommandLimits {
  /** Bytes of output; more ends it. */
  readonly output: number;
  /** Microseconds of work, as counted, not as measured. */
  readonly work: number;
  /** Seconds on the machine's own clock. */
  readonly seconds: number;
}

export const COMMAND_LIMITS: CommandLimits = { output: 2 ** 20, work: 2_000_000, seconds: 60 };

export interface Session {
  readonly machine: Machine;
  readonly folder: string;
  readonly variables: ReadonlyMap<string, string>;
}

export interface CommandResult {
  readonly output: string;
  readonly code: number;
  /** Why it was ended before its end. */
  readonly stopped: string | undefined;
}

const HOST = "box";
/** As of a process that was killed at its time limit. */
const STOPPED = 124;

let image: FileSystem | undefined;

/** What every machine has at the start. */
function baseImage(): FileSystem {
  const fs = createFileSystem(0);
  for (const folder of [
    "/root",
    "/home",
    "/tmp",
    "/etc",
    "/dev/fd",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/var/log",
    "/opt",
    "/srv",
    "/mnt",
    "/proc",
  ])
    files.makeFolders(fs, folder);
  for (const name of ["bash", "sh", ...programs.keys()])
    files.makeSpecial(fs, `/usr/bin/${name}`, "file", name);
  for (const [name, device] of [
    ...["null", "zero", "full", "random", "stdin", "stdout", "stderr"].map((one) => [one, one]),
    ["urandom", "random"],
    ["tty", "null"],
  ] as const)
    files.makeSpecial(fs, `/dev/${name}`, "device", device!);
  files.makeLink(fs, "usr/bin", "/bin");
  files.makeLink(fs, "usr/sbin", "/sbin");
  files.writeFile(fs, "/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n");
  files.writeFile(fs, "/etc/group", "root:x:0:\n");
  files.writeFile(fs, "/etc/hostname", `${HOST}\n`);
  files.changeMode(fs, "/tmp", 0o1777);
  return fs;
}

/** A machine as it is at first; times, process ids and random numbers follow from the seed. */
export function createSession(seed: number): Session {
  image ??= baseImage();
  const random = createRandom(mixSeed("machine", seed));
  // Some second of the year 2031.
  const time = 1_924_992_000_000 + random.int(31_536_000) * 1000 + random.int(1000);
  const machine: Machine = {
    fs: cloneFileSystem(image),
    random,
    time,
    process: 300 + random.int(30_000),
    work: 0,
    deadline: 0,
  };
  machine.fs.time = Math.floor(time / 1000);
  const variables = new Map([
    ["HOME", "/root"],
    ["HOSTNAME", HOST],
    ["LOGNAME", "root"],
    ["PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
    ["SHELL", "/bin/bash"],
    ["TERM", "dumb"],
    ["USER", "root"],
  ]);
  return { machine, folder: "/", variables };
}

/** An independent copy. */
export const cloneSession = (session: Session): Session => ({
  ...session,
  machine: cloneMachine(session.machine),
});

/** Bytes as text; what is no UTF-8 is replaced. */
export const textOfBytes = (bytes: string): string =>
  /^[\0-\x7f]*$/.test(bytes) ? bytes : Buffer.from(bytes, "latin1").toString("utf8");

/** Text as bytes, one character each. */
export const bytesOfText = (text: string): string =>
  /^[\0-\x7f]*$/.test(text) ? text : Buffer.from(text, "utf8").toString("latin1");

/** Runs a command line, and tells where that left the session. */
export function runCommand(
  session: Session,
  command: string,
  limits: CommandLimits = COMMAND_LIMITS,
  keepsVariables = false,
): { readonly result: CommandResult; readonly session: Session } {
  const { machine } = session;
  machine.work = limits.work;
  machine.deadline = machine.time + limits.seconds * 1000;
  machine.time += 1 + machine.random.int(400);
  machine.fs.time = Math.floor(machine.time / 1000);
  const output: Stream = { kind: "output", text: "", limit: limits.output, isPipe: false };
  const shell = freshShell(session, output);
  let stopped: string | undefined;
  let code = STOPPED;
  try {
    code = within(shell, () => runner.evaluate(shell, bytesOfText(command)));
  } catch (error) {
    stopped = reasonOf(error);
    if (stopped === undefined) throw error;
  }
  const result = { output: textOfBytes(output.text), code, stopped };
  const variables = keepsVariables ? new Map(environment(shell)) : session.variables;
  return { result, session: { machine, folder: shell.folder, variables } };
}

/** Why a command was ended; undefined for what is a mistake of this program's. */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof Stopped) return error.reason;
  // Deep nesting and huge texts that no limit of our own has met before.
  if (error instanceof RangeError) return "it was too large or nested too deeply";
  return undefined;
}

function freshShell({ machine, folder, variables }: Session, output: Stream): Shell {
  const exported = [...variables].map(
    ([name, value]) => [name, { value, exported: true }] as const,
  );
  return {
    machine,
    name: "bash",
    line: 1,
    folder,
    status: 0,
    variables: new Map<string, Variable>([
      ...exported,
      ["PWD", { value: folder, exported: true }],
      ["IFS", { value: " \t\n" }],
      ["UID", { value: "0", readonly: true }],
      ["EUID", { value: "0", readonly: true }],
      ["PPID", { value: "1", readonly: true }],
      ["OSTYPE", { value: "linux-gnu" }],
      ["BASH", { value: "/bin/bash" }],
      ["BASH_VERSION", { value: "5.2.15(1)-release" }],
      ["OPTIND", { value: "1" }],
    ]),
    scopes: [],
    functions: new Map(),
    positional: [],
    options: new Set(),
    traps: new Map(),
    streams: new Map([
      [0, nothing],
      [1, output],
      [2, output],
    ]),
    depth: 0,
    asked: 0,
    process: machine.process++,
    background: undefined,
    pipeStatus: [0],
    runner,
    started: machine.time,
  };
}
