/**
 * The speed of TextWorld's games here and in the original Python package, in the same run.
 *
 *   npm run build && npm run bench -- textworld [--data FOLDER] [--python PYTHON] [--rounds 8]
 *
 * PYTHON is one that has the package textworld; without it there are no ratios. Each side is a
 * process of its own, ours with the built package. Rounds of both alternate, and a ratio is the
 * median over rounds of steps per second of processor time, which counts all threads. Games are
 * played under plain names, where the original is fastest. Ours are measured after a warm-up;
 * `cold_steps_per_s` is the first play of a game.
 */
import { spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { recordedGames } from "@pawl/worlds/textworld/fixtures/recorded.js";
import { openGameFolder } from "@pawl/worlds/textworld/game-source.js";

const GAMES = 3;
const WARM_UP = 60;

interface Speed {
  readonly steps: number;
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
  const files = openGameFolder(data)
    .list("train")
    .filter(({ task }) => task.type === "tw-simple")
    .slice(0, GAMES)
    .map(({ file }) => file);
  if (files.length === 0) throw new Error(`${data} has no games of tw-simple to measure with`);
  const folder = mkdtempSync(join(tmpdir(), "pawl-bench-textworld-"));
  const node = [process.execPath, "--expose-gc", peerFile("ours-textworld.js")];
  const ours = startPeer(node);
  const original =
    values.python === undefined
      ? undefined
      : startPeer([values.python, peerFile("original-textworld.py")]);
  try {
    const copies = files.map((file) => plainCopy(file, folder));
    const listed = await measure(copies, false, rounds, ours, original);
    const all = await measure(copies, true, rounds, ours, original);
    const { microseconds } = await ours.ask<{ microseconds: number }>({ do: "clone", data });
    return {
      machine: `${cpus()[0]?.model.trim()}, ${cpus().length} threads, Node ${process.version}`,
      steps_per_s: listed.ours,
      steps_per_s_all: all.ours,
      cold_steps_per_s: listed.cold,
      original_steps_per_s: listed.theirs,
      original_steps_per_s_all: all.theirs,
      ratio: listed.ratio,
      ratio_all: all.ratio,
      clone_us: rounded(microseconds),
      ...(await liveMemory(data, node)),
    };
  } finally {
    ours.end();
    original?.end();
    rmSync(folder, { recursive: true });
  }
}

function peerFile(name: string): string {
  return new URL(`peer/${name}`, import.meta.url).pathname;
}

/** A copy under a name that does not begin with `tw-`. */
function plainCopy(file: string, folder: string): string {
  const copy = join(folder, basename(file).replace(/^tw-/, "textworld_"));
  copyFileSync(file, copy);
  copyFileSync(file.replace(/z8$/, "json"), copy.replace(/z8$/, "json"));
  return copy;
}

/** The walkthrough with looking, listing and examining between its steps. */
function commandsOf(file: string): readonly string[] {
  const world = readFileSync(file.replace(/z8$/, "json"), "utf8");
  const { metadata } = JSON.parse(world) as { metadata: { walkthrough: string[] } };
  return metadata.walkthrough.flatMap((one) => [one, "look", "inventory", "examine stove"]);
}

interface Peer {
  ask<Answer>(question: object): Promise<Answer>;
  end(): void;
}

function startPeer([program, ...given]: readonly string[]): Peer {
  const child = spawn(program!, given);
  child.stderr.pipe(process.stderr);
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async ask<Answer>(question: object) {
      child.stdin.write(`${JSON.stringify(question)}\n`);
      const { value, done } = await answers.next();
      if (done) throw new Error(`${program} ${given.join(" ")} ended without an answer`);
      return JSON.parse(value) as Answer;
    },
    end: () => child.stdin.end(),
  };
}

async function measure(
  files: readonly string[],
  all: boolean,
  rounds: number,
  ours: Peer,
  original: Peer | undefined,
) {
  const play = async (peer: Peer, game: string, times: number): Promise<number> => {
    const asked = { do: "play", game, all, commands: commandsOf(game), rounds: times };
    const { steps, processor } = await peer.ask<Speed>(asked);
    return steps / processor;
  };
  const cold: number[] = [];
  for (const file of files) cold.push(await play(ours, file, 1));
  for (const file of files) await play(ours, file, WARM_UP);
  const here: number[] = [];
  const there: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const file = files[round % files.length]!;
    here.push(await play(ours, file, 6));
    if (original !== undefined) there.push(await play(original, file, 2));
  }
  return {
    ours: Math.round(median(here)),
    cold: Math.round(median(cold)),
    theirs: there.length === 0 ? null : Math.round(median(there)),
    ratio: there.length === 0 ? null : rounded(median(there.map((one, at) => here[at]! / one))),
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[values.length >> 1]!;
}

function rounded(value: number): number {
  return Number(value.toFixed(2));
}

/** Memory of a fresh process with 128 games being played. */
async function liveMemory(data: string, node: readonly string[]) {
  const peer = startPeer(node);
  try {
    const asked = { do: "memory", data };
    const found = await peer.ask<{ before: number; after: number; goals: number; games: number }>(
      asked,
    );
    if (found.goals !== 128) throw new Error(`${128 - found.goals} live games lost their goals`);
    return { games: found.games, rss_128_mib: found.after, rss_before_mib: found.before };
  } finally {
    peer.end();
  }
}
