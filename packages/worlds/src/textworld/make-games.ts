/** Makes games with TextWorld's own generator, `tw-make`, where it is installed. */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import { STORY_FILE } from "./game.js";

/** Families of games, and what `tw-make` is told besides the seed. */
export const FAMILIES: Readonly<Record<string, readonly string[]>> = {
  // The games of Word-to-World, as far as its figures show.
  "tw-simple": ["--rewards", "balanced", "--goal", "detailed"],
  "tw-coin_collector": ["--level", "5"],
  "tw-treasure_hunter": ["--level", "5"],
  "tw-cooking": ["--recipe", "1", "--take", "1", "--open", "--go", "6"],
  custom: ["--world-size", "5", "--nb-objects", "10", "--quest-length", "5"],
};

/** What to make. */
export interface MakeOptions {
  readonly family: string;
  /** Arguments for `tw-make` in place of the family's usual ones. */
  readonly arguments: readonly string[] | undefined;
  readonly count: number;
  /** The seed of the first game; the others follow. */
  readonly seed: number;
  /** How many of them are for tests. */
  readonly test: number;
  /** How files are called before the seed. */
  readonly prefix: string;
  readonly folder: string;
  readonly jobs: number;
  /** The generator's program. */
  readonly program: string;
}

/** How to install the generator, in words. */
const HOW_TO_INSTALL =
  "TextWorld's generator is a Python package for Linux and macOS: python3 -m venv tw && tw/bin/pip install textworld==1.7.0, then add --tw-make tw/bin/tw-make. Playing needs no Python.";

/**
 * Makes the games that are not there yet, and calls `made` after each with its file. A game appears
 * under its name only when both of its files are complete.
 */
export async function makeGames(
  options: MakeOptions,
  made: (file: string) => void,
  signal?: AbortSignal,
): Promise<void> {
  const { count, seed, test, folder, prefix } = options;
  const wanted = Array.from({ length: count }, (_, index) => {
    const split = test === 0 ? "" : index < count - test ? "train" : "test";
    return {
      seed: seed + index,
      file: join(folder, split, `${prefix}${seed + index}${STORY_FILE}`),
    };
  }).filter(({ file }) => !existsSync(file));
  for (const part of test === 0 ? [""] : ["train", "test"])
    mkdirSync(join(folder, part), { recursive: true });
  const work = async (): Promise<void> => {
    for (let game = wanted.shift(); game !== undefined; game = wanted.shift()) {
      await makeGame(options, game.seed, game.file, signal);
      made(game.file);
    }
  };
  try {
    await Promise.all(Array.from({ length: options.jobs }, work));
  } finally {
    // After an error, the other workers end with the game they are at.
    wanted.length = 0;
  }
}

async function makeGame(
  options: MakeOptions,
  seed: number,
  file: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const unfinished = file.replace(/\.z8$/, ".part.z8");
  const given = options.arguments ?? FAMILIES[options.family] ?? [];
  await runProgram(
    options.program,
    [
      options.family,
      ...given,
      "--seed",
      String(seed),
      "--output",
      unfinished,
      "--force",
      "--silent",
    ],
    signal,
  );
  const world = (story: string): string => story.replace(/\.z8$/, ".json");
  for (const part of [unfinished, world(unfinished)])
    if (!existsSync(part))
      throw new EnvError(`${options.program} ended well, but wrote no ${part}: is it TextWorld's?`);
  renameSync(world(unfinished), world(file));
  renameSync(unfinished, file);
  rmSync(unfinished.replace(/\.z8$/, ".ni"), { force: true });
}

const LONGEST_COMPLAINT = 2000;

function runProgram(
  program: string,
  given: readonly string[],
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, given, { stdio: ["ignore", "ignore", "pipe"], signal });
    let complaint = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      complaint = (complaint + text).slice(-LONGEST_COMPLAINT);
    });
    child.on("error", (error: NodeJS.ErrnoException) => {
      reject(
        error.code === "ENOENT"
          ? new EnvError(`textworld: ${program} was not found. ${HOW_TO_INSTALL}`, { cause: error })
          : error,
      );
    });
    child.on("close", (code) => {
      if (code === 0) resolve();
      else
        reject(
          new EnvError(
            `textworld: ${program} ${given.join(" ")} ended with code ${code}: ${complaint.trim() || "it gave no reason"}`,
          ),
        );
    });
  });
}
