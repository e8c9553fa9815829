/** The Java runtime: which command it is, and whether it runs. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { EnvError } from "../env.js";
import { HOW_TO_INSTALL } from "./jar.js";

/** A Java that runs. */
export interface Java {
  readonly command: string;
  /** The first line of what it says about itself. */
  readonly version: string;
}

const CHECK_SECONDS = 30;

const known = new Map<string, Java>();

/** The Java that the option names, or that of JAVA_HOME, or the one on the path. */
export function findJava(option?: string): Java {
  const home = process.env.JAVA_HOME || undefined;
  const command = option ?? (home === undefined ? "java" : join(home, "bin", "java"));
  const found = known.get(command) ?? { command, version: versionOf(command) };
  known.set(command, found);
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
