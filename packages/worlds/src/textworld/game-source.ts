/** Where games come from: a folder of story files, or made up. */

import { type Dirent, readdirSync } from "node:fs";
import { join } from "node:path";
import { EnvError, type Task } from "@pawl/core/envs/env.js";
import { type GameSummary, loadGame, STORY_FILE, summarizeGame } from "./game.js";
import { startMadePlay } from "./made-up/made-play.js";
import { MADE_UP, MOST_POINTS, madeUpGame, madeUpSplits, madeUpTasks } from "./made-up/made-up.js";
import { startPlay } from "./play.js";
import type { ObservationStyle, Play } from "./turn-text.js";

// The games of a folder: every `.z8` file in it or below it, with its `.json`. Folders called train,
// valid and test are the splits; without them, every fifth game is for tests.

const SPLITS = ["train", "valid", "test"];
const TEST_EVERY = 5;
const DEEPEST = 4;

/** How to get games, in words. */
const HOW_TO_GET_GAMES =
  "TextWorld's games are made, not downloaded: pawl env make textworld --count 100 --out games calls its tw-make " +
  "(pip install textworld; Linux and macOS), and TEXTWORLD_GAMES or the option data names the folder";

/** A game of a folder. */
interface ListedGame {
  readonly task: Task;
  readonly file: string;
  readonly summary: GameSummary;
}

/** The games of a folder, by split. */
interface GameFolder {
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

/** Games, by split. */
export interface GameSource {
  readonly splits: readonly string[];
  /** The tasks of a split that are of the chosen types; a type that no game has is an error. */
  tasks(split: string): readonly Task[];
  /** The largest score of all games. */
  maxScore(): number;
  start(task: Task, style: ObservationStyle | "by-name"): Play;
  /** The file of a recorded game. */
  find(name: string): string;
  /** What there is, for `pawl env info`. */
  readonly about: string;
  readonly howToGetMore: string;
}

/** The games at `data`, a folder or `made-up`. */
export function openGames(data: string, types: readonly string[] | undefined): GameSource {
  return data === MADE_UP ? madeUpGames(types) : gamesInFolder(data, types);
}

function madeUpGames(types: readonly string[] | undefined): GameSource {
  return {
    splits: Object.keys(madeUpSplits),
    tasks: (split) =>
      chosen(`${split} of the ${MADE_UP} games`, types, madeUpTasks(split), (task) => task),
    maxScore: () => MOST_POINTS,
    start: (task, style) => startMadePlay(madeUpGame(task), style === "plain" ? "plain" : "tw"),
    find() {
      throw new EnvError(
        "textworld: recordings are of story files, and the games are made up. Set data (or TEXTWORLD_GAMES) to their folder.",
      );
    },
    about: `${MADE_UP}: games of our own in the manner of TextWorld's, not made by it; they need no files`,
    howToGetMore: `for TextWorld's own: ${HOW_TO_GET_GAMES}`,
  };
}

function gamesInFolder(data: string, types: readonly string[] | undefined): GameSource {
  const folder = openGameFolder(data);
  const gamesOf = (split: string): readonly ListedGame[] =>
    chosen(`${split} in ${folder.root}`, types, folder.list(split), ({ task }) => task);
  return {
    splits: folder.splits,
    tasks: (split) => gamesOf(split).map(({ task }) => task),
    maxScore() {
      const games = folder.splits.flatMap(gamesOf);
      const endless = games.find(({ summary }) => summary.maxScore === Number.POSITIVE_INFINITY);
      if (endless !== undefined)
        throw new EnvError(
          `textworld: ${endless.file} has a quest that can be repeated, so there is no largest score; use reward: success`,
        );
      return Math.max(...games.map(({ summary }) => summary.maxScore));
    },
    start(task, style) {
      const { file } = gamesOf(task.split).find((one) => one.task.id === task.id)!;
      const game = loadGame(file);
      const named = game.named ? "tw" : "plain";
      return startPlay(game, { style: style === "by-name" ? named : style, tracked: false });
    },
    find: (name) => folder.find(name),
    about: folder.root,
    howToGetMore: `to get more: ${HOW_TO_GET_GAMES}`,
  };
}

function chosen<Item>(
  where: string,
  types: readonly string[] | undefined,
  items: readonly Item[],
  taskOf: (item: Item) => Task,
): readonly Item[] {
  if (types === undefined) return items;
  const found = items.filter((item) => types.includes(taskOf(item).type));
  if (found.length > 0) return found;
  const present = [...new Set(items.map((item) => taskOf(item).type))].sort();
  throw new EnvError(
    `textworld: ${where} has no games of ${types.join(" or ")}; it has ${present.join(", ")}`,
  );
}
