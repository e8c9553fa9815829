/**
 * A JVM with py4j's gateway as a child process. It ends when its standard input closes: when it is
 * told to, and also when this process is gone, be it by SIGKILL. It has a process group of its own,
 * so that Ctrl-C reaches it only through us.
 */
import { spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Readable } from "node:stream";
import { EnvError } from "@pawl/core/envs/env.js";
import { connectGateway, type Gateway } from "./gateway.js";
import { HOW_TO_INSTALL, type Jar } from "./jar.js";

/** How to start a JVM. */
export interface JvmOptions {
  /** The command. */
  readonly java: string;
  readonly jar: Jar;
  /** Megabytes of heap. */
  readonly heap: number;
  /** Whether sets are to keep the order of insertion, which takes time. */
  readonly fixedOrder: boolean;
  /** Seconds that the start, and later each answer, may take. */
  readonly seconds: number;
}

/** A running JVM. */
export interface Jvm {
  readonly pid: number;
  readonly gateway: Gateway;
  /** Whether it can still be used. */
  readonly alive: boolean;
  /** Deletes its working folder, once the simulator has read what it needs there. */
  forgetFolder(): void;
  /** Ends it; what waits for its answers fails with this reason. */
  end(reason: string): void;
}

/**
 * Flags of the JVM. The serial collector and a bounded heap keep a process small (docs/scienceworld.md
 * has the figures). `hashCode=2` gives every object the same identity hash: sets then keep the
 * order of insertion, and have to search for what they hold. JVMs that do not know it ignore it.
 */
function jvmFlags({ heap, fixedOrder }: JvmOptions): readonly string[] {
  return [
    `-Xmx${heap}m`,
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UseSerialGC",
    ...(fixedOrder ? ["-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=2"] : []),
  ];
}

/** How much of its output is kept for error messages, and read while waiting for the port. */
const KEPT = 2000;

/** Starts a JVM and connects to it. */
export async function startJvm(options: JvmOptions): Promise<Jvm> {
  const { java, jar, seconds } = options;
  // A private folder: the simulator reads its table there, and may rewrite it.
  const folder = mkdtempSync(join(tmpdir(), "pawl-scienceworld-"));
  const forgetFolder = (): void => rmSync(folder, { recursive: true, force: true });
  const server = ["-classpath", jar.path, "py4j.GatewayServer", "--die-on-broken-pipe", "0"];
  copyFileSync(jar.objectTypes, join(folder, basename(jar.objectTypes)));
  const child = spawn(java, [...jvmFlags(options), ...server], { cwd: folder, detached: true });
  let gateway: Gateway | undefined;
  let ended: string | undefined;
  const end = (reason: string): void => {
    ended ??= reason;
    gateway?.fail(new EnvError(`scienceworld: ${ended}`));
    child.stdin.destroy();
    child.kill("SIGKILL");
    forgetFolder();
  };
  // What cannot be written to or ended is gone, which is what was wanted.
  child.on("error", () => undefined);
  child.stdin.on("error", () => undefined);
  const stderr = keepLast(child.stderr);
  child.once("exit", (code, signal) => {
    const said = stderr().trim();
    const how = signal === null ? `with code ${code}` : `by ${signal}`;
    end(`the simulator's process ended ${how}${said === "" ? "" : `: ${said}`}`);
  });
  try {
    const port = await portOf(child.stdout, seconds, (stop) => {
      child.once("error", (error: NodeJS.ErrnoException) => {
        stop(
          error.code === "ENOENT"
            ? `there is no ${java}. To have it, ${HOW_TO_INSTALL}`
            : `${java} cannot be started: ${error.message}`,
        );
      });
      child.once("exit", () =>
        stop(`${java} did not start ${jar.path}: ${ended ?? "it ended at once"}`),
      );
    });
    gateway = await connectGateway({ port, seconds, onDead: ({ message }) => end(message) });
  } catch (error) {
    end((error as Error).message);
    throw error;
  }
  // Idle processes must not keep ours alive; the gateway's socket does while an answer is awaited.
  child.unref();
  for (const stream of [child.stdin, child.stdout, child.stderr])
    (stream as unknown as { unref?: () => void }).unref?.();
  return {
    pid: child.pid!,
    gateway,
    get alive() {
      return ended === undefined;
    },
    forgetFolder,
    end,
  };
}

/** The end of what a stream says, while it is read and thrown away. */
function keepLast(stream: Readable): () => string {
  let text = "";
  stream.setEncoding("utf8").on("data", (more: string) => {
    text = (text + more).slice(-KEPT);
  });
  return () => text;
}

/** The port, which is the first line of standard output; the rest is read and thrown away. */
function portOf(
  stdout: Readable,
  seconds: number,
  onStop: (stop: (reason: string) => void) => void,
): Promise<number> {
  return new Promise((resolve, reject) => {
    let said = "";
    const stop = (reason: string): void => {
      clearTimeout(timer);
      reject(new EnvError(`scienceworld: ${reason}.`));
    };
    const timer = setTimeout(
      () => stop(`the simulator did not name its port within ${seconds} s`),
      seconds * 1000,
    );
    onStop(stop);
    stdout.setEncoding("utf8").on("data", (more: string) => {
      if (said.length > KEPT) return;
      said += more;
      const line = /^(.*)\r?\n/.exec(said)?.[1];
      if (line === undefined && said.length <= KEPT) return;
      said = said.padEnd(KEPT + 1);
      clearTimeout(timer);
      const port = Number(line);
      if (/^\d{1,5}$/.test(line ?? "") && port > 0 && port < 65536) return resolve(port);
      stop(
        `the simulator's first line must be its port, got ${JSON.stringify((line ?? said).trim().slice(0, 100))}`,
      );
    });
  });
}
