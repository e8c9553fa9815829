/**
 * The memory of commands that read a whole record, of 40,000 generated episodes by default (Linux).
 *
 *   npm run bench -- records [--episodes N] [--gb N]
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { episodesPath } from "@pawl/core/runs/small-file.js";
import { makeLargeRun } from "./shared/generated-runs.js";

const CLI = join("dist", "lib", "main.js");

/** The largest resident size of a command, in MiB. */
async function memoryOf(args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ["ignore", "ignore", "inherit"] });
  const ended = new Promise<number | null>((done) => child.on("close", done));
  let most = 0;
  while (child.exitCode === null && child.signalCode === null) {
    try {
      const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
      most = Math.max(most, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
    } catch {}
    await wait(50);
  }
  const code = await ended;
  if (code !== 0) throw new Error(`pawl ${args[0]} ended with ${code ?? child.signalCode}`);
  return Math.round(most / 1024);
}

export async function main(args: readonly string[]): Promise<object> {
  const option = (name: string, missing: number): number => {
    const at = args.indexOf(`--${name}`);
    return at < 0 ? missing : Number(args[at + 1]);
  };
  const folder = mkdtempSync(join(tmpdir(), "pawl-records-"));
  const run = join(folder, "run");
  try {
    const episodes = option("episodes", 40_000);
    makeLargeRun(run, episodes, option("gb", 0.6) * 1e9);
    return {
      episodes,
      recordMegabytes: Math.round(statSync(episodesPath(run)).size / 1e6),
      showMib: await memoryOf(["show", run]),
      checkMib: await memoryOf(["check", run]),
      exportMib: await memoryOf([
        ...["export", run, "--to", "jsonl", "--out", join(folder, "episodes.jsonl")],
      ]),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
