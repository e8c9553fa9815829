/**
 * An MCP server as a child process, spoken to over its standard input and output.
 *
 * Unlike the official transport, the server is a process group of its own: whatever it starts
 * (`npx` starts another process) ends with it. It also keeps the end of what the server writes to
 * its standard error, because that is where it says why it failed.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { guard, unguard } from "@pawl/core/processes/process-calls.js";

/** How to start a server. */
export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
}

/** A transport to a child process. */
export interface ServerProcess extends Transport {
  /** The last lines that the server wrote to its standard error. */
  complaint(): string;
}

/** Variables of this process that a server gets: none that may hold a key. */
const SAFE =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LC_\w+|TMPDIR|TEMP|TMP|SystemRoot|APPDATA|LOCALAPPDATA|USERPROFILE|PATHEXT|npm_config_\w+)$/;

const COMPLAINT = 2_000;
const LONGEST_MESSAGE = 64 * 2 ** 20;
/** How long a server may take to end by itself after its input is closed. */
const GRACE_MS = 500;
const windows = process.platform === "win32";

/** Starts a server when the client connects. */
export function serverProcess({ command, args, env, cwd }: ServerCommand): ServerProcess {
  let child: ChildProcess | undefined;
  let written = "";
  let rest = "";
  const transport: ServerProcess = {
    complaint: () => written.trim(),
    start: () =>
      new Promise((resolve, reject) => {
        const safe = Object.entries(process.env).filter(([name]) => SAFE.test(name));
        child = spawn(command, args, {
          env: { ...Object.fromEntries(safe), ...env },
          cwd,
          stdio: "pipe",
          detached: !windows,
          windowsHide: true,
        });
        const { stdin, stdout, stderr, pid } = child;
        if (pid !== undefined) guard(windows ? pid : -pid);
        child.once("spawn", () => resolve());
        child.once("error", (error) => {
          reject(error);
          transport.onerror?.(error);
        });
        child.once("close", () => transport.onclose?.());
        stdin!.on("error", (error) => transport.onerror?.(error));
        stderr!.setEncoding("utf8").on("data", (text: string) => {
          written = (written + text).slice(-COMPLAINT);
        });
        stdout!.setEncoding("utf8").on("data", (text: string) => {
          const lines = (rest + text).split("\n");
          rest = lines.pop()!;
          if (rest.length > LONGEST_MESSAGE) kill(child!, "SIGKILL");
          for (const line of lines) receive(line);
        });
      }),
    send: (message) =>
      new Promise((resolve, reject) => {
        child!.stdin!.write(`${JSON.stringify(message)}\n`, (error) =>
          error ? reject(error) : resolve(),
        );
      }),
    async close() {
      const closing = child;
      child = undefined;
      if (closing?.pid === undefined) return;
      const { pid } = closing;
      const ended = new Promise<void>((resolve) => {
        if (closing.exitCode !== null || closing.signalCode !== null) resolve();
        else closing.once("exit", () => resolve());
      });
      closing.stdin!.end();
      const late = setTimeout(() => kill(closing, "SIGKILL"), GRACE_MS);
      await ended;
      clearTimeout(late);
      // What it started itself may have outlived it.
      kill(closing, "SIGKILL");
      unguard(windows ? pid : -pid);
    },
  };
  const receive = (line: string): void => {
    if (line.trim() === "") return;
    let message: JSONRPCMessage;
    try {
      message = JSON.parse(line) as JSONRPCMessage;
    } catch {
      // Servers that print to standard output by mistake are common, and harmless.
      return;
    }
    transport.onmessage?.(message);
  };
  return transport;
}

function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (windows) child.kill(signal);
    else process.kill(-child.pid!, signal);
  } catch {
    // It has ended already.
  }
}
