/**
 * A JVM with py4j's gateway as a child process. It ends when its standard input closes: when it is
 * told to, and also when this process is gone, be it by SIGKILL. It has a process group of its own,
 * so that Ctrl-C reaches it only through us.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { EnvError } from "@pawl/core/envs/env.js";
import { readZipMember, zipMembers } from "@pawl/core/files/inflate.js";
import { readRegular } from "@pawl/core/files/regular-file.js";
import { connectGateway, type Gateway } from "./gateway.js";

/** A jar that can be started. */
export interface Jar {
  readonly path: string;
  /** Of the simulator, such as 1.2.3. */
  readonly version: string;
  /** Where it was found, in words. */
  readonly from: string;
  /** The table of kinds of objects that the simulator reads at its start. */
  readonly objectTypes: string;
}

/** What to install, for error messages and `pawl env info`. */
export const HOW_TO_INSTALL =
  "install a Java runtime, 8 or later (Debian and Ubuntu: apt install openjdk-17-jre-headless), and the official package: pip install scienceworld. To do without pip's copy: pip download --no-deps scienceworld, unzip the .whl file, and set SCIENCEWORLD_JAR or the option jar to its scienceworld/scienceworld.jar";

const OBJECT_TYPES = "object_type_ids.tsv";
const MAIN_CLASSES = [
  "py4j/GatewayServer.class",
  "scienceworld/runtime/pythonapi/PythonInterface.class",
];

/** The jar that the option names, or SCIENCEWORLD_JAR, or that of the installed Python package. */
export function findJar(option?: string): Jar {
  const named = option ?? (process.env.SCIENCEWORLD_JAR || undefined);
  if (named !== undefined)
    return openJar(resolve(named), option === undefined ? "SCIENCEWORLD_JAR" : "the option jar");
  for (const python of [process.env.PAWL_PYTHON, "python3", "python"]) {
    const folder = python === undefined ? undefined : packageFolder(python);
    if (folder !== undefined) return openJar(join(folder, "scienceworld.jar"), `of ${python}`);
  }
  throw new EnvError(
    `scienceworld: the simulator was not found: no option jar, no SCIENCEWORLD_JAR, no Python package. To have it, ${HOW_TO_INSTALL}.`,
  );
}

/** The folder of the Python package `scienceworld`, if this Python has it. */
function packageFolder(python: string): string | undefined {
  // Without the working folder, which may be anyone's.
  const script =
    "import sys; sys.path[:] = filter(None, sys.path); import importlib.util as u; print(u.find_spec('scienceworld').origin)";
  try {
    const origin = execFileSync(python, ["-c", script], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      timeout: 20_000,
    });
    return dirname(origin.trim());
  } catch {
    return undefined;
  }
}

/** Reads a jar's table of contents; anything else is an `EnvError` that says what to do. */
export function openJar(path: string, from: string): Jar {
  const { names, manifest } = readJar(path, from);
  const missing = MAIN_CLASSES.find((name) => !names.has(name));
  if (missing !== undefined)
    throw new EnvError(
      `scienceworld: ${path} (${from}) is a jar, but not the simulator's: it has no ${missing}. ${HOW_TO_INSTALL}.`,
    );
  const objectTypes = join(dirname(path), OBJECT_TYPES);
  if (!existsSync(objectTypes))
    throw new EnvError(
      `scienceworld: ${objectTypes} is missing: keep it beside the jar, as in the Python package`,
    );
  const version = /^Implementation-Version: *(\S+)/m.exec(manifest)?.[1] ?? "unknown";
  return { path, version, from, objectTypes };
}

/** The names of a jar's files, and its manifest. */
function readJar(
  path: string,
  from: string,
): { readonly names: ReadonlySet<string>; readonly manifest: string } {
  const refuse = (found: string, cause?: unknown): EnvError =>
    new EnvError(`scienceworld: ${path} (${from}) ${found}. ${HOW_TO_INSTALL}.`, { cause });
  let bytes: Buffer;
  try {
    if (statSync(path).isDirectory()) throw new Error("it is a folder");
    bytes = readRegular(path);
  } catch (error) {
    throw refuse(`cannot be read: ${(error as Error).message}`, error);
  }
  try {
    const entries = zipMembers(bytes);
    const manifest = entries.get("META-INF/MANIFEST.MF");
    return {
      names: new Set(entries.keys()),
      manifest: manifest === undefined ? "" : readZipMember(bytes, manifest).toString("utf8"),
    };
  } catch (error) {
    throw refuse(`is no jar: ${(error as Error).message}`, error);
  }
}

/** A Java that runs. */
interface Java {
  readonly command: string;
  /** The first line of what it says about itself. */
  readonly version: string;
}

const CHECK_SECONDS = 30;

const javas = new Map<string, Java>();

/** The Java that the option names, or that of JAVA_HOME, or the one on the path. */
export function findJava(option?: string): Java {
  const home = process.env.JAVA_HOME || undefined;
  const command = option ?? (home === undefined ? "java" : join(home, "bin", "java"));
  const found = javas.get(command) ?? { command, version: versionOf(command) };
  javas.set(command, found);
  return found;
}

function versionOf(command: string): string {
  const { error, status, stderr } = spawnSync(command, ["-version"], {
    encoding: "utf8",
    timeout: CHECK_SECONDS * 1000,
    killSignal: "SIGKILL",
  });
  const [first = ""] = (stderr ?? "").trim().split("\n");
  if (error === undefined && status === 0) return first;
  const missing = (error as NodeJS.ErrnoException | undefined)?.code === "ENOENT";
  const reason = missing ? "there is no such command" : (error?.message ?? `it says: ${first}`);
  throw new EnvError(
    `scienceworld: Java (${command}) does not run: ${reason}. To have it, ${HOW_TO_INSTALL}.`,
  );
}

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
