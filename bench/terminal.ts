/**
 * The speed and memory of the terminal on one thread: simple commands, episodes, resets, copies, and
 * how much of it the machine's own bash takes, a fresh process for each command.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Env } from "@pawl/core/envs/env.js";
import { makeFolders, writeFile } from "@pawl/worlds/terminal/shell/file-system.js";
import { cloneSession, createSession, runCommand } from "@pawl/worlds/terminal/shell/session.js";
import { terminal } from "@pawl/worlds/terminal/terminal.js";

/** What agents do most: look, search, count, change a line. */
const SIMPLE = [
  "ls -la",
  "cat f0.txt",
  "grep -n two f1.txt",
  "wc -l f2.txt",
  "head -n 2 f3.txt",
  "sort f4.txt > s.txt",
  "sed -i s/two/2/ f5.txt",
  "echo four >> f6.txt",
  "cp f7.txt g.txt",
  "awk '{print $1}' f8.txt",
  "find . -name 'f1*.txt'",
  "cat f9.txt | sort | uniq -c",
];
const FILES = 200;
const SHELLS = 128;
const TEXT = "one 1\ntwo 2\nthree 3\n";

function machine(seed: number) {
  const session = createSession(seed);
  const { fs } = session.machine;
  makeFolders(fs, "/app");
  for (let n = 0; n < FILES; n++) writeFile(fs, `/app/f${n}.txt`, TEXT);
  return { ...session, folder: "/app" };
}

const secondsOf = (run: () => void): number => {
  const start = performance.now();
  run();
  return (performance.now() - start) / 1000;
};

/** The median of ten rounds, since others may delay one. */
function median(round: (n: number) => number): number {
  const all = Array.from({ length: 10 }, (_, n) => round(n)).sort((a, b) => a - b);
  return (all[4]! + all[5]!) / 2;
}

function residentMib(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss() / 2 ** 20;
}

/** Simple commands a second in one shell with 200 files; the median of ten rounds. */
function commandsPerSecond(rounds: number): number {
  return median((seed) => {
    const session = machine(seed);
    const seconds = secondsOf(() => {
      for (let n = 0; n < rounds; n++) runCommand(session, SIMPLE[n % SIMPLE.length]!);
    });
    return rounds / seconds;
  });
}

/** The same commands, each in a fresh bash of the machine's own. */
function bashPerSecond(rounds: number): number {
  const folder = mkdtempSync(join(tmpdir(), "pawl-bench-bash-"));
  try {
    for (let n = 0; n < FILES; n++) writeFileSync(join(folder, `f${n}.txt`), TEXT);
    const seconds = secondsOf(() => {
      for (let n = 0; n < rounds; n++)
        spawnSync("bash", ["-c", SIMPLE[n % SIMPLE.length]!], { cwd: folder });
    });
    return rounds / seconds;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Milliseconds of a reset, and steps a second with resets and tests, of the teacher's episodes. */
function episodes(count: number) {
  const environment = terminal.open(terminal.options.parse({}));
  const tasks = environment.tasks("train");
  const env = environment.create() as Env;
  let resets = 0;
  let steps = 0;
  let at = 0;
  const perSecond = median(() => {
    const before = steps;
    const seconds = secondsOf(() => {
      for (let n = 0; n < count / 10; n++, at++) {
        resets += secondsOf(() => env.reset(tasks[at % tasks.length]!, at));
        for (let done = false; !done; steps++) done = env.step(environment.expert!(env)).done;
      }
    });
    return (steps - before) / seconds;
  });
  return { reset_ms: (1000 * resets) / at, expert_steps_per_s: Math.round(perSecond) };
}

export async function main(args: readonly string[]): Promise<object> {
  const rounds = args.includes("--quick") ? 600 : 12_000;
  commandsPerSecond(rounds / 10);
  const commands = Math.round(commandsPerSecond(rounds));
  const original = machine(1);
  const copies = 2000;
  const clone = median(
    () =>
      (1000 *
        secondsOf(() => {
          for (let n = 0; n < copies; n++) cloneSession(original);
        })) /
      copies,
  );
  const shells = Array.from({ length: SHELLS }, (_, n) => machine(n));
  for (const [n, shell] of shells.entries()) runCommand(shell, SIMPLE[n % SIMPLE.length]!);
  const shellsMib = residentMib();
  const { reset_ms, expert_steps_per_s } = episodes(rounds / 4);
  return {
    commands_per_s: commands,
    bash_processes_per_s: Math.round(bashPerSecond(rounds / 20)),
    clone_200_files_ms: Number(clone.toFixed(4)),
    process_with_shells_mib: Math.round(shellsMib),
    reset_ms: Number(reset_ms.toFixed(3)),
    expert_steps_per_s,
    shells: shells.length,
  };
}
