/** A protocol server in its own process, so that tests can kill it. It needs only Node. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { startTestServer, type TestServerOptions } from "./server-testing.js";

/** Options of such a process, as JSON. */
export type ProcessOptions = Omit<TestServerOptions, "fault">;

/** A server in another process. */
export interface ServerProcess {
  readonly url: string;
  /** Waits until the call has been made this many more times. */
  called(path: string, times?: number): Promise<void>;
  /** Kills it at once, whatever it is doing. */
  kill(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts a server process and waits until it listens. */
export async function startServerProcess(options: ProcessOptions): Promise<ServerProcess> {
  const compiled = new URL(
    "../../../../dist/packages/engine-remote/src/remote/process-testing.js",
    import.meta.url,
  );
  const load = `import(${JSON.stringify(compiled)}).then((m) => m.runServer())`;
  const child = spawn(process.execPath, ["-e", load, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return watchServer(child, (line) => /^called (.*)$/.exec(line)?.[1]);
}

/** Follows what a server process prints: first its address, then the calls that `callOf` finds. */
export async function watchServer(
  child: ChildProcess,
  callOf: (line: string) => string | undefined,
): Promise<ServerProcess> {
  const waiting: { readonly path: string; times: number; resolve(): void }[] = [];
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    createInterface({ input: child.stdout! }).on("line", (line) => {
      const listening = /"listening": ?"([^"]+)"/.exec(line)?.[1];
      if (listening !== undefined) resolve(listening);
      const path = callOf(line);
      for (const waiter of waiting) {
        if (waiter.path === path && --waiter.times === 0) waiter.resolve();
      }
    });
  });
  return {
    url,
    called: (path, times = 1) =>
      new Promise((resolve) => {
        waiting.push({ path, times, resolve });
      }),
    kill: async (signal = "SIGKILL") => {
      child.kill(signal);
      await ended;
    },
  };
}

/** The process itself: serves until it is killed, and prints every call it receives. */
export async function runServer(): Promise<void> {
  const options = JSON.parse(process.argv[1]!) as ProcessOptions;
  const { url } = await startTestServer({
    ...options,
    fault: (path) => {
      process.stdout.write(`called ${path}\n`);
      return undefined;
    },
  });
  process.stdout.write(`${JSON.stringify({ listening: url })}\n`);
}
