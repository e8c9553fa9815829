/**
 * The games of a folder: every `.z8` file in it or below it, with its `.json`. Folders called train,
 * valid and test are the splits; without them, every fifth game is for tests.
 */
import { type Dirent, readdirSync } from "node:fs";
import { join } from "node:path";
import { EnvError, type Task } from "@pawl/core/envs/env.js";
import { type GameSummary, STORY_FILE, summarizeGame } from "./game.js";

const SPLITS = ["train", "valid", "test"];
const TEST_EVERY = 5;
const DEEPEST = 4;

/** How to get games, in words. */
export const HOW_TO_GET_GAMES =
  "TextWorld's games are made, not downloaded: pawl env make textworld --count 100 --out games calls its tw-make " +
  "(pip install textworld; Linux and macOS), and TEXTWORLD_GAMES or the option data names the folder";

/** A game of a folder. */
export interface ListedGame {
  readonly task: Task;
  readonly file: string;
  readonly summary: GameSummary;
}

/** The games of a folder, by split. */
export interface GameFolder {
  readonly root: string;
  readonly splits: readonly string[];
  list(split: string): readonly ListedGame[];
  /** The file with this name, such as `tw-simple-1.z8`, wherever it is in the folder. */
  find(name: string): string;
}

/** Opens a folder of games; one without games is an `EnvError` that says how to get them. */
export function openGameFolder(data: string): GameFolder {
  const paths = storyFiles(data, "", DEEPEST).sort(byNumber);
  if (paths.length === 0)
    throw new EnvError(
      `textworld: there are no ${STORY_FILE} files in ${data}. ${HOW_TO_GET_GAMES}.`,
    );
  const bySplit = divide(paths);
  const lists = new Map<string, readonly ListedGame[]>();
  return {
    root: data,
    splits: [...bySplit.keys()],
    list(split) {
      let games = lists.get(split);
      if (games === undefined) {
        games = (bySplit.get(split) ?? []).map((path) => listGame(data, split, path));
        lists.set(split, games);
      }
      return games;
    },
    find(name) {
      const found = paths.filter((path) => path === name || path.endsWith(`/${name}`));
      if (found.length === 1) return join(data, found[0]!);
      throw new EnvError(
        found.length === 0
          ? `textworld: ${data} has no game ${name}`
          : `textworld: ${data} has ${found.length} games called ${name}: ${found.join(", ")}`,
      );
    },
  };
}

function listGame(root: string, split: string, path: string): ListedGame {
  const file = join(root, path);
  const summary = summarizeGame(file);
  const name = path.slice(0, -STORY_FILE.length);
  const id = name.startsWith(`${split}/`) ? name : `${split}/${name}`;
  return { task: { id, split, type: summary.family }, file, summary };
}

/** Splits by folder, or every fifth game for tests. */
function divide(paths: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const inFolders = SPLITS.map(
    (split) => [split, paths.filter((path) => path.startsWith(`${split}/`))] as const,
  ).filter(([, list]) => list.length > 0);
  if (inFolders.length > 0) return new Map(inFolders);
  if (paths.length < TEST_EVERY) return new Map([["train", paths]]);
  const forTests = (_: string, index: number): boolean => index % TEST_EVERY === TEST_EVERY - 1;
  return new Map([
    ["train", paths.filter((path, index) => !forTests(path, index))],
    ["test", paths.filter(forTests)],
  ]);
}

function storyFiles(root: string, below: string, depth: number): string[] {
  let entries: Dirent[];
  try {
    entries = readdirSync(join(root, below), { withFileTypes: true });
  } catch (error) {
    throw new EnvError(
      `textworld: the folder ${join(root, below)} cannot be read: ${(error as Error).message}`,
      { cause: error },
    );
  }
  return entries.flatMap((entry) => {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) return depth > 0 ? storyFiles(root, path, depth - 1) : [];
    return path.endsWith(STORY_FILE) ? [path] : [];
  });
}

const collator = new Intl.Collator("en", { numeric: true });

/** Names with numbers in order of the numbers, the same on every machine. */
function byNumber(left: string, right: string): number {
  return collator.compare(left, right) || (left < right ? -1 : 1);
}
