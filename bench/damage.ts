/**
 * Damaged run folders: bits flipped, tails zeroed or cut off, files deleted, swapped or edited.
 *
 *   npm run bench -- damage [--kind train|overlap|rwml|wm] [--flips 6] [--seed 1] [--only TEXT]
 *     [--workers 2] [--minutes M]
 *
 * Every damage is tried on a copy of a tiny finished run. `pawl check`, `show`, `replay` (of `train`)
 * and a resume may refuse it by name, go on to the very numbers of the whole run, or go on
 * without what was damaged, kept aside and reported. Anything else is a bug: other numbers, a stack
 * trace, a hang, records lost beyond the damage. `--flips` are the random ones per file, besides
 * those at chosen places. The damages are tried in random order; `--minutes` ends before all were.
 */
import { type ChildProcess, fork } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createRandom } from "../src/random.js";
import { damages } from "./shared/damage-cases.js";
import { type Judged, judge, newestOf, type Whole, wholeRun } from "./shared/damage-judge.js";
import { type RunToDamage, runsToDamage } from "./shared/damage-kinds.js";
import type { Damage } from "./shared/one-damage.js";

/** Longer than this for the commands of one damage is a hang. */
const HANG_MS = 180_000;

interface Options {
  readonly folder: string;
  readonly kind: RunToDamage;
  readonly flips: number;
  readonly seed: number;
}

const casesOf = ({ folder, flips, seed }: Omit<Options, "kind">) =>
  damages({ run: join(folder, "run"), other: join(folder, "other") }, { flips, seed });

async function prepare(folder: string, kind: RunToDamage): Promise<void> {
  await kind.make(folder, "run", 0);
  await kind.make(folder, "other", 1);
  const copy = join(folder, "whole");
  cpSync(join(folder, "run"), copy, { recursive: true });
  const whole = await wholeRun(copy, kind);
  const { metrics, episodes, weights } = whole.numbers;
  const numbers = { metrics: [...metrics], episodes: [...episodes], weights };
  writeFileSync(join(folder, "whole.json"), JSON.stringify({ ...whole, numbers }));
}

function readWhole(folder: string): Whole {
  const { numbers, ...rest } = JSON.parse(readFileSync(join(folder, "whole.json"), "utf8"));
  const { metrics, episodes, weights } = numbers;
  return { ...rest, numbers: { metrics: new Map(metrics), episodes: new Map(episodes), weights } };
}

/** The child's work: one damage after another, each answered when it is judged. */
async function work(options: Options): Promise<void> {
  const whole = readWhole(options.folder);
  const cases = casesOf(options);
  process.on("message", async (index: number) => {
    const run = join(options.folder, `damaged-${process.pid}`);
    rmSync(run, { recursive: true, force: true });
    cpSync(join(options.folder, "run"), run, { recursive: true });
    process.send!(await judge(run, options.kind, cases[index]!, whole));
  });
  await new Promise((done) => process.on("disconnect", done));
}

function startWorker(args: readonly string[]): ChildProcess {
  return fork(resolve("bench/run.js"), ["damage", "--work", ...args], {
    execArgv: [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
}

/** Asks a worker to judge one damage; a worker that hangs or dies has judged it too. */
function ask(worker: ChildProcess, index: number): Promise<Judged> {
  return new Promise((done) => {
    const end = (problem: string): void => {
      worker.kill("SIGKILL");
      done({ outcome: "BUG", check: "", problems: [problem] });
    };
    const timer = setTimeout(() => end("hangs"), HANG_MS);
    const onExit = (code: number | null): void => end(`the process ended with ${code}`);
    worker.once("exit", onExit);
    worker.once("message", (judged: Judged) => {
      clearTimeout(timer);
      worker.off("exit", onExit);
      done(judged);
    });
    worker.send(index);
  });
}

const nameOf = ({ kind, file, what }: Damage): string => `${kind}: ${file}: ${what}`;

function count(
  table: Map<string, Map<string, number>>,
  { kind, file }: Damage,
  { outcome, check }: Judged,
  newest: string,
): void {
  const place = file
    .replace(newest, "checkpoints/newest")
    .replace(/\d{6}/, "older")
    .replace(/tfevents.*/, "tfevents");
  const row = `${kind} | ${place}`;
  const cell = outcome === "same numbers" && check === "found" ? "same numbers, found" : outcome;
  const cells = table.get(row) ?? new Map<string, number>();
  table.set(row, cells.set(cell, (cells.get(cell) ?? 0) + 1));
}

export async function main(args: readonly string[]): Promise<object> {
  const settingOf = (flag: string, usual: string): string => {
    const at = args.indexOf(flag);
    return at < 0 ? usual : args[at + 1]!;
  };
  const [flips, seed] = [Number(settingOf("--flips", "6")), Number(settingOf("--seed", "1"))];
  const name = settingOf("--kind", "train");
  const kind = runsToDamage[name];
  if (kind === undefined) throw new Error(`--kind is one of ${Object.keys(runsToDamage)}`);
  if (args.includes("--work")) {
    await work({ folder: settingOf("--folder", ""), kind, flips, seed });
    return {};
  }
  const folder = mkdtempSync(join(tmpdir(), "pawl-damage-"));
  const given = [
    ...["--kind", name, "--folder", folder, "--flips", String(flips), "--seed", String(seed)],
  ];
  const workers = new Set<ChildProcess>();
  try {
    await prepare(folder, kind);
    const only = settingOf("--only", "");
    const cases = [...casesOf({ folder, flips, seed }).entries()].filter(([, damage]) =>
      nameOf(damage).includes(only),
    );
    const end = Date.now() + Number(settingOf("--minutes", "600")) * 60_000;
    const table = new Map<string, Map<string, number>>();
    let bugs = 0;
    let tried = 0;
    const waiting = createRandom(seed).shuffle([...cases]);
    const takeTurns = async (): Promise<void> => {
      let worker = startWorker(given);
      for (
        let next = waiting.shift();
        next !== undefined && Date.now() < end;
        next = waiting.shift()
      ) {
        workers.add(worker);
        const [index, damage] = next;
        const judged = await ask(worker, index);
        if (worker.exitCode !== null || worker.killed) worker = startWorker(given);
        count(table, damage, judged, newestOf(join(folder, "run")));
        if (++tried % 50 === 0) process.stderr.write(`${tried} of ${cases.length}\n`);
        if (judged.problems.length === 0) continue;
        bugs++;
        const problems = judged.problems.map((one) => `    ${one}\n`).join("");
        process.stderr.write(`✗ ${nameOf(damage)}\n${problems}`);
      }
      worker.kill();
    };
    const turns = Number(settingOf("--workers", "2"));
    await Promise.all(Array.from({ length: turns }, takeTurns));
    for (const [row, cells] of [...table].sort(([a], [b]) => (a < b ? -1 : 1)))
      process.stdout.write(
        `| ${row} | ${[...cells].map(([column, times]) => `${times} ${column}`).join(", ")} |\n`,
      );
    if (bugs > 0) process.exitCode = 1;
    return { kind: name, damages: tried, of: cases.length, bugs, flips, seed };
  } finally {
    for (const worker of workers) worker.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}
