/** Runs scripts here and in the machine's own bash, to compare what they write. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeFolders } from "./file-system.js";
import { createSession, runCommand } from "./session.js";

interface Outcome {
  readonly output: string;
  readonly code: number | null;
}

/** What a script writes, and its status, in an empty folder. */
export function runBoth(script: string): { readonly bash: Outcome; readonly ours: Outcome } {
  const root = mkdtempSync(join(tmpdir(), "pawl-shell-"));
  const folder = join(root, "app");
  mkdirSync(folder);
  const text = `exec 2>&1\n${script}`;
  try {
    const env = { PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC", HOME: "/root" };
    const bash = spawnSync("bash", ["-c", text], { cwd: folder, env, input: "", encoding: "utf8" });
    const session = createSession(0);
    makeFolders(session.machine.fs, folder);
    const { output, code } = runCommand({ ...session, folder }, text).result;
    return { bash: { output: bash.stdout, code: bash.status }, ours: { output, code } };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
