/**
 * The PyTorch server as a child process: which Python runs it, its command line, start and stop.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { UserError } from "@pawl/core/errors.js";
import { packageFolder } from "@pawl/core/version.js";

/** A Python that has PyTorch. */
export interface TorchPython {
  readonly command: string;
  readonly torch: string;
}

/** How to start the server. */
export interface TorchServerOptions {
  /** Absent: runs upload their models. */
  readonly model?: string | undefined;
  readonly checkpoints: string;
  readonly host: string;
  readonly port: number;
  /** Processes, one per GPU. */
  readonly nproc: number;
  readonly name?: string | undefined;
  readonly dtype?: string | undefined;
  readonly threads?: number | undefined;
  readonly batchTokens?: number | undefined;
  readonly memory?: number | undefined;
  readonly sampleRows?: number | undefined;
  readonly activationCheckpointing?: boolean;
}

const run = promisify(execFile);

/** The first Python with PyTorch: the given one, PAWL_PYTHON, or what is on the path. */
export async function findTorchPython(
  environment: Readonly<Record<string, string | undefined>>,
  named?: string,
): Promise<TorchPython> {
  const chosen = named ?? environment.PAWL_PYTHON;
  const tried: string[] = [];
  for (const command of chosen === undefined ? ["python3", "python"] : [chosen]) {
    try {
      const { stdout } = await run(command, ["-c", "import torch; print(torch.__version__)"]);
      return { command, torch: stdout.trim() };
    } catch (error) {
      const { code, stderr = "" } = error as NodeJS.ErrnoException & { readonly stderr?: string };
      const lastLine = stderr.trim().split("\n").at(-1) ?? "";
      tried.push(code === "ENOENT" ? `no ${command}` : `${command}: ${lastLine}`);
    }
  }
  throw new UserError(
    `the engine server needs Python with PyTorch, and none was found (${tried.join("; ")}). Install it (pip install torch), or name the Python that has it: PAWL_PYTHON=FILE`,
  );
}

/** The command to run, with its arguments. */
export function torchServerCommand(
  python: TorchPython,
  options: TorchServerOptions,
): readonly [command: string, args: readonly string[]] {
  const script = join(packageFolder(), "servers", "torch", "serve.py");
  if (!existsSync(script))
    throw new UserError(
      `${script} is missing: this installation of pawl is incomplete; install it again`,
    );
  const flags: readonly (readonly [string, string | number | undefined])[] = [
    ["--model", options.model],
    ["--checkpoints", options.checkpoints],
    ["--host", options.host],
    ["--port", options.port],
    ["--name", options.name],
    ["--dtype", options.dtype],
    ["--threads", options.threads],
    ["--batch-tokens", options.batchTokens],
    ["--memory", options.memory],
    ["--sample-rows", options.sampleRows],
  ];
  const args = [
    script,
    ...flags.flatMap(([flag, value]) => (value === undefined ? [] : [flag, String(value)])),
    ...(options.activationCheckpointing === true ? ["--activation-checkpointing"] : []),
    // We hold its standard input, which closes when we are gone, even by SIGKILL.
    "--until-stdin-closes",
  ];
  // torchrun as a module, so that the chosen Python's own is used.
  const launcher = ["-m", "torch.distributed.run", "--standalone"];
  return [
    python.command,
    options.nproc === 1 ? args : [...launcher, `--nproc_per_node=${options.nproc}`, ...args],
  ];
}

/** A server process that is listening. */
export interface TorchServer {
  readonly url: string;
  readonly process: ChildProcess;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  /** Asks it to exit, and kills it if it does not. */
  stop(): Promise<void>;
}

/** How long a server may take to exit after being asked. */
const GRACE_MS = 5000;

/** Starts the server and waits until it listens; its error output goes to `onLine`. */
export async function startTorchServer(
  python: TorchPython,
  options: TorchServerOptions,
  environment: Readonly<Record<string, string | undefined>>,
  onLine: (line: string) => void,
): Promise<TorchServer> {
  const [command, args] = torchServerCommand(python, options);
  const child = spawn(command, args, {
    env: environment,
    stdio: ["pipe", "pipe", "pipe"],
    // Ctrl-C reaches us and not the server, which runs may still need for a moment.
    detached: process.platform !== "win32",
  });
  const ended = new Promise<number | NodeJS.Signals>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(code ?? signal ?? 0));
  });
  const lines: string[] = [];
  createInterface({ input: child.stderr }).on("line", (line) => {
    lines.push(line);
    if (lines.length > 20) lines.shift();
    onLine(line);
  });
  const listening = new Promise<string>((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const url = /"listening": ?"([^"]+)"/.exec(line)?.[1];
      if (url === undefined) onLine(line);
      else resolve(url);
    });
  });
  const first = await Promise.race([listening, ended]);
  if (typeof first !== "string" || !first.startsWith("http"))
    throw new UserError(
      `the engine server ended with ${first} before it was listening: ${lines.join("\n") || "without output"}`,
    );
  return {
    url: first,
    process: child,
    ended,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), GRACE_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}
