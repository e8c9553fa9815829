/**
 * Runs that are killed with SIGKILL, again and again, and resumed: they end as if nothing had been.
 *
 *   npm run bench -- kills [--mode chat,agent,…] [--kills 300] [--seed 1] [--workers 2]
 *
 * For every mode a whole tiny run is made, then others that are killed at random moments (a quarter of
 * them any time, the others shortly after a line of progress) and resumed until they are done. What they
 * recorded must be the whole run's, byte for byte except clocks, with nothing left behind.
 * `remote` needs a Python with PyTorch (PAWL_PYTHON).
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import { findTorchPython, startTorchServer } from "@pawl/pawl/cli/torch-server.js";
import { differences, type KilledRun, killAndResume, pawl } from "./shared/killed-runs.js";
import { type TinyRun, tinyRuns, trained } from "./shared/tiny-runs.js";

/** A kill after which a run makes no more progress than before would go on for ever. */
const KILLS_PER_RUN = 12;

/** What came out of a mode. */
interface Row {
  readonly mode: string;
  readonly kills: number;
  /** Those that hit a process which held the run's lock, and not one that was starting. */
  readonly recording: number;
  readonly runs: number;
  readonly problems: readonly string[];
  readonly seconds: number;
}

/** A mode that is ready to be killed. */
interface Prepared extends KilledRun {
  readonly mode: string;
  readonly folder: string;
}

/** The modes, and how to end what they started. */
async function modesOf(
  names: readonly string[],
  folder: string,
): Promise<{ readonly modes: Readonly<Record<string, TinyRun>>; end(): Promise<void> }> {
  const { train: _, ...here } = tinyRuns;
  if (!names.includes("remote")) return { modes: here, end: async () => undefined };
  const python = await findTorchPython(process.env);
  const checkpoints = join(folder, "server");
  mkdirSync(checkpoints);
  const server = await startTorchServer(
    python,
    { checkpoints, host: "127.0.0.1", port: 0, nproc: 1, threads: 1 },
    { ...process.env, PAWL_API_KEY: "" },
    () => undefined,
  );
  const remote = trained({ engine: { address: server.url, copy: true } });
  return { modes: { ...here, remote }, end: () => server.stop() };
}

async function prepare(mode: string, run: TinyRun, parent: string): Promise<Prepared> {
  const folder = join(parent, mode);
  mkdirSync(folder);
  const start = await run.prepare(folder, "run", 0);
  const whole = await pawl([...run.command, ...start, "--out", join(folder, "whole")]);
  if (whole.code !== 0) throw new Error(`${mode}: ${whole.stderr}`);
  return { mode, folder, command: run.command, start, whole };
}

async function killed(mode: Prepared, kills: number, seed: number): Promise<Row> {
  const random = createRandom(mixSeed(seed, mode.mode));
  const began = performance.now();
  const problems: string[] = [];
  let done = 0;
  let recording = 0;
  let runs = 0;
  while (done < kills && problems.length === 0) {
    const out = join(mode.folder, `killed-${runs++}`);
    try {
      const most = Math.min(KILLS_PER_RUN, kills - done);
      const ended = await killAndResume(mode, out, most, random);
      done += ended.kills;
      recording += ended.recording;
      problems.push(...differences(join(mode.folder, "whole"), out));
    } catch (error) {
      problems.push((error as Error).message);
    }
    if (problems.length === 0) rmSync(out, { recursive: true });
    process.stderr.write(
      `${mode.mode}: ${done} of ${kills} kills, ${recording} while recording, ${runs} runs\n`,
    );
  }
  for (const problem of problems) process.stderr.write(`✗ ${mode.mode}: ${problem}\n`);
  return {
    mode: mode.mode,
    kills: done,
    recording,
    runs,
    problems,
    seconds: (performance.now() - began) / 1e3,
  };
}

export async function main(args: readonly string[]): Promise<object> {
  const settingOf = (flag: string, usual: string): string => {
    const at = args.indexOf(flag);
    return at < 0 ? usual : args[at + 1]!;
  };
  const [kills, seed] = [Number(settingOf("--kills", "300")), Number(settingOf("--seed", "1"))];
  const all = [...Object.keys(tinyRuns).filter((name) => name !== "train"), "remote"];
  const names = settingOf("--mode", all.join()).split(",");
  const unknown = names.find((name) => !all.includes(name));
  if (unknown !== undefined) throw new Error(`--mode ${unknown}: expected some of ${all.join()}`);
  const folder = mkdtempSync(join(tmpdir(), "pawl-kills-"));
  const { modes, end } = await modesOf(names, folder);
  const rows: Row[] = [];
  try {
    const ready: Prepared[] = [];
    for (const name of names) ready.push(await prepare(name, modes[name]!, folder));
    const share = (index: number): number =>
      Math.floor(kills / names.length) + (index < kills % names.length ? 1 : 0);
    const queue = ready.entries();
    const work = async (): Promise<void> => {
      for (const [index, mode] of queue) rows.push(await killed(mode, share(index), seed));
    };
    await Promise.all(Array.from({ length: Number(settingOf("--workers", "2")) }, work));
  } finally {
    await end();
    if (rows.every(({ problems }) => problems.length === 0))
      rmSync(folder, { recursive: true, force: true });
    else process.stderr.write(`the runs are in ${folder}\n`);
  }
  rows.sort((a, b) => names.indexOf(a.mode) - names.indexOf(b.mode));
  process.stdout.write(
    "| mode | kills | while recording | runs | other bytes |\n| --- | --- | --- | --- | --- |\n",
  );
  for (const { mode, kills: times, recording, runs, problems } of rows)
    process.stdout.write(`| ${mode} | ${times} | ${recording} | ${runs} | ${problems.length} |\n`);
  const sum = (of: (row: Row) => number): number => rows.reduce((total, row) => total + of(row), 0);
  const bugs = sum(({ problems }) => problems.length);
  const totals = [sum((row) => row.kills), sum((row) => row.recording), sum((row) => row.runs)];
  process.stdout.write(`| all | ${totals.join(" | ")} | ${bugs} |\n`);
  if (bugs > 0) process.exitCode = 1;
  return { kills: sum((row) => row.kills), bugs, seed, seconds: Math.round(sum((r) => r.seconds)) };
}
