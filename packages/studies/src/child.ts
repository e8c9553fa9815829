/** Our own commands as child processes. */
import { spawn } from "node:child_process";
import { UserError } from "@pawl/core/errors.js";
import { loadedPlugins } from "@pawl/core/loaded-plugins.js";

/** How to start a child process, and callbacks. */
export interface ChildOptions {
  /** The script that `node` runs. */
  readonly program: string;
  readonly signal: AbortSignal;
  /** Callback for every line of progress. */
  readonly onLine?: (line: string) => void;
}

const LAST_LINES = 5;

/**
 * Runs `pawl ARGS` and returns its output; a non-zero exit code is an error with its last lines.
 */
export function runChild(
  args: readonly string[],
  { program, signal, onLine }: ChildOptions,
): Promise<string> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const plugins = loadedPlugins().flatMap(({ path }) => ["--plugin", path]);
    const child = spawn(process.execPath, [program, ...args, ...plugins], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const stop = (): void => void child.kill("SIGTERM");
    signal.addEventListener("abort", stop);
    let stdout = "";
    let rest = "";
    const last: string[] = [];
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        last.push(line);
        if (last.length > LAST_LINES) last.shift();
        onLine?.(line);
      }
    });
    child.on("error", reject);
    child.on("close", (code, killedBy) => {
      signal.removeEventListener("abort", stop);
      if (signal.aborted) reject(signal.reason as Error);
      else if (code === 0) resolve(stdout);
      else {
        const words = [...last, rest].filter((line) => line !== "").join("\n");
        reject(
          new UserError(`pawl ${args[0]} ended with ${killedBy ?? `exit code ${code}`}: ${words}`),
        );
      }
    });
  });
}
