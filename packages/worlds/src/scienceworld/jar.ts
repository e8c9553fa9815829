/** The official simulator's jar: where it is, which version it is, and what to do without it. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import { readRegular } from "@pawl/core/files/regular-file.js";
import { readZipMember, zipMembers } from "@pawl/core/files/zip-members.js";

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
export interface Java {
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
