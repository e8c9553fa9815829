/** Runs that are killed at random moments and resumed, and what they record in the end. */
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import type { Random } from "@pawl/core/random.js";
import { checkRun } from "@pawl/core/runs/check-run.js";
import { readRecords } from "@pawl/core/runs/record-file.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { filesOf } from "./damage-cases.js";

/** How far into the time or the lines of a whole run a kill comes at the latest. */
const MOST_OF_RUN = 0.7;

const cli = resolve("dist/lib/main.js");

/** How a process ended, and how many lines it had written. */
export interface Ended {
  /** Null: by a signal. */
  readonly code: number | null;
  readonly lines: number;
  readonly stderr: string;
  readonly ms: number;
  readonly pid: number;
}

/** When to kill a process: some time after it has written a number of lines. */
export interface Kill {
  readonly afterLines: number;
  readonly ms: number;
}

/** Runs `pawl ARGS` in a process of its own, and kills it if that is wished. */
export function pawl(args: readonly string[], kill?: Kill): Promise<Ended> {
  return new Promise((done, reject) => {
    const began = performance.now();
    const child = spawn(process.execPath, [cli, ...args], { stdio: ["ignore", "ignore", "pipe"] });
    let stderr = "";
    let isArmed = false;
    const lines = () => stderr.split("\n").length - 1;
    const arm = (): void => {
      if (kill === undefined || isArmed || lines() < kill.afterLines) return;
      isArmed = true;
      setTimeout(() => child.kill("SIGKILL"), kill.ms);
    };
    arm();
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
      arm();
    });
    child.on("error", reject);
    child.on("close", (code) =>
      done({ code, lines: lines(), stderr, ms: performance.now() - began, pid: child.pid! }),
    );
  });
}

/** A run as command lines. */
export interface KilledRun {
  /** Its words after `pawl`. */
  readonly command: readonly string[];
  /** What starts it, without `--out`. */
  readonly start: readonly string[];
  /** The whole run, for how long it takes. */
  readonly whole: Ended;
}

/**
 * Starts a run and kills it at random moments, at most so many times; resumes it each time, to its
 * end. Returns how often it was killed, and how often of that while it recorded.
 */
export async function killAndResume(
  { command, start, whole }: KilledRun,
  out: string,
  kills: number,
  random: Random,
): Promise<{ readonly kills: number; readonly recording: number }> {
  let recording = 0;
  for (let done = 0; ; ) {
    // Killed before the run existed, it is started again into the same folder.
    const isThere = existsSync(join(out, "manifest.json"));
    const args = isThere ? ["--resume", out] : [...start, "--out", out];
    // A resumed run is shorter; its end is the end of them all.
    const share = random.next() * MOST_OF_RUN;
    const kill =
      random.next() < 0.25
        ? { afterLines: 0, ms: Math.floor(share * whole.ms) }
        : { afterLines: 1 + Math.floor(share * (whole.lines - 1)), ms: random.int(250) };
    const ended = await pawl([...command, ...args], done < kills ? kill : undefined);
    if (ended.code === 0) return { kills: done, recording };
    if (ended.code !== null) throw new Error(`after ${done} kills: ${ended.stderr}`);
    done++;
    if (holdsLock(out, ended.pid)) recording++;
  }
}

/** Whether a process that was killed held the lock of a run. */
function holdsLock(run: string, pid: number): boolean {
  const names = existsSync(run) ? readdirSync(run) : [];
  return names.some(
    (name) => /^lock(\.\d+)?$/.test(name) && JSON.parse(textOf(join(run, name))).pid === pid,
  );
}

/** What stands for the clock, the machine, or the run's own moment of creation. */
const CLOCKS = /^(seconds|memory|pace)\./;
const timeless = (line: object): object =>
  Object.fromEntries(Object.entries(line).filter(([name]) => !CLOCKS.test(name)));
const withoutRun = ({ run: _, reference: __, ...rest }: Record<string, unknown>) => rest;

/**
 * Everything that a run recorded, by file, without clocks: TensorBoard's files, which hold the same
 * numbers with the time of each, and checksums of files that hold one; those are checked instead.
 */
function recorded(folder: string): ReadonlyMap<string, string> {
  const fail = (message: string): never => {
    throw new Error(message);
  };
  const run = openRun(folder, fail);
  const { kind, status, seed, config, summary } = run.manifest;
  const all = new Map([["manifest.json", JSON.stringify({ kind, status, seed, config, summary })]]);
  const read = (file: string): string | undefined => {
    const path = join(folder, file);
    const name = basename(file);
    if (file === "metrics.jsonl") return JSON.stringify(run.metrics().map(timeless));
    if (name === "state.json") return JSON.stringify(withoutRun(JSON.parse(textOf(path))));
    if (name.startsWith("triplets."))
      return JSON.stringify([...readRecords(path, ({ message }) => fail(message))].map(asTriplets));
    // Adapters name the weights that they belong to.
    if (name === "adapter_config.json") return textOf(path).replaceAll(folder, "RUN");
    // A server's own names for what it keeps, and what depends on the moment of creation.
    const isOwn = /^(manifest\.json|metrics\.crc32|pawl-checksums\.json|remote\.json)$/.test(name);
    return isOwn || file.startsWith("tensorboard") ? undefined : readFileSync(path, "base64");
  };
  for (const file of filesOf(folder)) {
    const content = read(file);
    if (content !== undefined) all.set(file, content);
  }
  return all;
}

const textOf = (path: string): string => readFileSync(path, "utf8");
const asTriplets = (record: unknown): unknown => withoutRun(record as Record<string, unknown>);

/** What differs between a whole run and one that was killed; also what was left behind. */
export function differences(whole: string, killed: string): readonly string[] {
  const [expected, found] = [recorded(whole), recorded(killed)];
  const names = new Set([...expected.keys(), ...found.keys()]);
  const left = readdirSync(killed, { recursive: true, encoding: "utf8" }).filter((name) =>
    /\.(tmp|partial|draft|mending)$|^lock/.test(name),
  );
  return [
    ...[...names].filter((name) => expected.get(name) !== found.get(name)),
    ...left.map((name) => `${name} was left behind`),
    ...checkRun(killed).flatMap(({ problems }) => problems),
  ];
}
