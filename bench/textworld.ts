/**
 * The speed of TextWorld's games here and in the original Python package, in the same run.
 *
 *   npm run bench -- textworld [--data FOLDER] [--python PYTHON] [--rounds 8]
 *
 * PYTHON is one that has the package textworld; without it there are no ratios. Rounds of both sides
 * alternate, and a ratio is the median over rounds of steps per second of processor time, which
 * counts all threads. Games are played under plain names, where the original is fastest. Ours are
 * measured after a warm-up; `cold_steps_per_s` is the first play of a game.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import type { Env } from "../src/envs/env.js";
import { recordedGames } from "../src/envs/textworld/fixtures/recorded.js";
import { type Game, loadGame } from "../src/envs/textworld/game.js";
import { openGameFolder } from "../src/envs/textworld/games.js";
import { type Play, startPlay } from "../src/envs/textworld/play.js";
import { textworld } from "../src/envs/textworld/textworld.js";
import { createRandom } from "../src/random.js";

const GAMES = 3;
const WARM_UP = 60;
const LIVE = 128;
const LIVE_STEPS = 20;
const CLONES = 2000;

interface Speed {
  readonly steps: number;
  readonly seconds: number;
  readonly processor: number;
}

/** Runs the benchmark. */
export async function main(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      data: { type: "string" },
      python: { type: "string" },
      rounds: { type: "string", default: "8" },
    },
  });
  const data = values.data ?? process.env.TEXTWORLD_GAMES ?? recordedGames();
  const rounds = Number(values.rounds);
  const { rss_128_mib, rss_before_mib } = liveMemory(data);
  const folder = mkdtempSync(join(tmpdir(), "pawl-bench-textworld-"));
  const original = values.python === undefined ? undefined : startOriginal(values.python);
  try {
    const files = openGameFolder(data)
      .list("train")
      .filter(({ task }) => task.type === "tw-simple")
      .slice(0, GAMES)
      .map(({ file }) => plainCopy(file, folder));
    if (files.length === 0) throw new Error(`${data} has no games of tw-simple to measure with`);
    const listed = await measure(files, false, rounds, original);
    const all = await measure(files, true, rounds, original);
    return {
      machine: `${cpus()[0]?.model.trim()}, ${cpus().length} threads, Node ${process.version}`,
      games: files.length,
      steps_per_s: listed.ours,
      steps_per_s_all: all.ours,
      cold_steps_per_s: listed.cold,
      original_steps_per_s: listed.theirs,
      original_steps_per_s_all: all.theirs,
      ratio: listed.ratio,
      ratio_all: all.ratio,
      clone_us: cloneTime(data),
      rss_128_mib,
      rss_before_mib,
    };
  } finally {
    original?.child.stdin.end();
    rmSync(folder, { recursive: true });
  }
}

/** A copy under a name that does not begin with `tw-`. */
function plainCopy(file: string, folder: string): string {
  const copy = join(folder, basename(file).replace(/^tw-/, "textworld_"));
  copyFileSync(file, copy);
  copyFileSync(file.replace(/z8$/, "json"), copy.replace(/z8$/, "json"));
  return copy;
}

/** The walkthrough with looking, listing and examining between its steps. */
function commandsOf({ walkthrough }: Game): readonly string[] {
  return walkthrough.flatMap((command) => [command, "look", "inventory", "examine stove"]);
}

interface Original {
  readonly child: ChildProcessWithoutNullStreams;
  play(asked: object): Promise<Speed>;
}

function startOriginal(python: string): Original {
  const script = new URL("peer/original-textworld.py", import.meta.url).pathname;
  const child = spawn(python, [script]);
  child.stderr.pipe(process.stderr);
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    child,
    async play(asked) {
      child.stdin.write(`${JSON.stringify(asked)}\n`);
      const { value, done } = await answers.next();
      if (done) throw new Error(`${python} ended without an answer: does it have textworld?`);
      return JSON.parse(value) as Speed;
    },
  };
}

async function measure(
  files: readonly string[],
  all: boolean,
  rounds: number,
  original: Original | undefined,
) {
  const plays = files.map((file) => startPlay(loadGame(file), { style: "plain", tracked: all }));
  const cold = plays.map((play) => perSecond(playOurs(play, 1)));
  for (const play of plays) playOurs(play, WARM_UP);
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const play = plays[round % plays.length]!;
    const game = files[round % files.length]!;
    ours.push(perSecond(playOurs(play, 6)));
    if (original === undefined) continue;
    const commands = commandsOf(play.game);
    theirs.push(perSecond(await original.play({ game, all, commands, rounds: 2 })));
  }
  return {
    ours: Math.round(median(ours)),
    cold: Math.round(median(cold)),
    theirs: theirs.length === 0 ? null : Math.round(median(theirs)),
    ratio: theirs.length === 0 ? null : rounded(median(theirs.map((one, at) => ours[at]! / one))),
  };
}

function playOurs(play: Play, rounds: number): Speed {
  const commands = commandsOf(play.game);
  const { tracker } = play.game;
  const start = performance.now();
  const used = process.cpuUsage();
  let steps = 0;
  for (let round = 0; round < rounds; round++) {
    let moment = play.start;
    for (const command of commands) {
      moment = play.step(moment, command);
      tracker.commands(moment.facts);
      steps++;
      if (moment.won || moment.lost) break;
    }
  }
  const { user, system } = process.cpuUsage(used);
  return { steps, seconds: (performance.now() - start) / 1000, processor: (user + system) / 1e6 };
}

function perSecond({ steps, processor }: Speed): number {
  return steps / processor;
}

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[values.length >> 1]!;
}

function rounded(value: number): number {
  return Number(value.toFixed(2));
}

/** The median time of a clone in the middle of an episode, in microseconds. */
function cloneTime(data: string): number {
  const environment = textworld.open(textworld.options.parse({ data }));
  const env = environment.create() as Env;
  env.reset(environment.tasks("train")[0]!);
  env.step("look");
  const times: number[] = [];
  for (let at = 0; at < CLONES; at++) {
    const start = performance.now();
    env.clone();
    times.push((performance.now() - start) * 1000);
  }
  return rounded(median(times));
}

/** Resident memory of the process with 128 games being played. */
function liveMemory(data: string) {
  const resident = (): number => {
    globalThis.gc?.();
    return Math.round(process.memoryUsage.rss() / 2 ** 20);
  };
  const rss_before_mib = resident();
  const environment = textworld.open(textworld.options.parse({ data }));
  const tasks = environment.splits.flatMap((split) => environment.tasks(split));
  const random = createRandom(1);
  const envs = Array.from({ length: LIVE }, (_, index) => {
    const env = environment.create() as Env;
    env.reset(tasks[index % tasks.length]!);
    for (let step = 0; step < LIVE_STEPS; step++)
      if (env.step(random.pick(env.admissibleActions!())).done) break;
    return env;
  });
  const rss_128_mib = resident();
  if (envs.some((env) => env.goal === "")) throw new Error("a live game lost its goal");
  return { rss_128_mib, rss_before_mib };
}
