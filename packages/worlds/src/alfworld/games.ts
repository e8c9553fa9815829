/**
 * The games of a data folder, in the layout of the official download:
 * `json_…/<split>/<type>-…/<trial>/game.tw-pddl`. Listing reads folders and the end of each file,
 * where a game says whether it can be solved; games are parsed when they are played.
 */
import { closeSync, fstatSync, readdirSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { EnvError, type Task } from "@pawl/core/envs/env.js";
import { openRegular } from "@pawl/core/files/regular-file.js";
import { didYouMean } from "@pawl/core/text/nearest.js";
import { parseJson } from "../tau/value.js";

/** The number of games in each split of the official download, in listing order. */
export const OFFICIAL_SIZES: ReadonlyMap<string, number> = new Map([
  ["train", 3553],
  ["valid_seen", 140],
  ["valid_unseen", 134],
  ["valid_train", 200],
]);
const OFFICIAL_SPLITS = [...OFFICIAL_SIZES.keys()];
const GAME_FILE = "game.tw-pddl";

/** How to get the data, in words. */
export const HOW_TO_GET_DATA =
  "install the official package (pip install alfworld), run alfworld-download, and set ALFWORLD_DATA " +
  "(or the option data) to the folder it filled: the one that holds json_2.1.1/train, " +
  "json_2.1.1/valid_seen and so on";

/** The games of one split. */
interface SplitList {
  readonly tasks: readonly Task[];
  /** Games that are marked as unsolvable; they are not in `tasks`. */
  readonly unsolvable: number;
}

/** The games of a data folder. */
export interface GameFolder {
  /** The folder that holds the splits. */
  readonly root: string;
  readonly splits: readonly string[];
  /** The task types of all splits, by the names of their folders. */
  types(): readonly string[];
  /** The games of a split, read on first use; a missing one is an `EnvError`. */
  list(split: string): SplitList;
}

/** Opens a data folder; a folder without games is an `EnvError` that says how to get them. */
export function openGameFolder(data: string | undefined): GameFolder {
  if (data === undefined || data === "")
    throw new EnvError(`alfworld: no data folder is given; ${HOW_TO_GET_DATA}`);
  const { root, splits } = findSplits(data);
  const lists = new Map<string, SplitList>();
  const list = (split: string): SplitList => {
    let found = lists.get(split);
    if (found === undefined) {
      if (!splits.includes(split)) {
        const there = `${root} has ${splits.join(", ")}`;
        const remedy = OFFICIAL_SPLITS.includes(split)
          ? `; the download is incomplete: ${HOW_TO_GET_DATA}`
          : `.${didYouMean(split, splits)}`;
        throw new EnvError(`alfworld has no split "${split}"; ${there}${remedy}`);
      }
      found = readSplit(root, split);
      lists.set(split, found);
    }
    return found;
  };
  const types = () =>
    [...new Set(splits.flatMap((split) => folders(join(root, split)).map(taskType)))].sort();
  return { root, splits, types, list };
}

/** The file of the game with this id. */
export function gameFile(folder: GameFolder, id: string): string {
  return join(folder.root, id, GAME_FILE);
}

/** The id of the game at a path such as `valid_seen/<type>-…/<trial>/game.tw-pddl`. */
export function gameId(path: string): string {
  return path.endsWith(`/${GAME_FILE}`) ? path.slice(0, -GAME_FILE.length - 1) : path;
}

/** Finds the folder with the splits: the data folder itself, or the `json_…` folder in it. */
function findSplits(data: string): { readonly root: string; readonly splits: readonly string[] } {
  const versions = folders(data)
    .filter((name) => name.startsWith("json_"))
    .sort()
    .reverse();
  for (const root of [data, ...versions.map((name) => join(data, name))]) {
    const present = folders(root);
    const splits = OFFICIAL_SPLITS.filter((split) => present.includes(split));
    if (splits.length > 0) return { root, splits };
  }
  const wanted = `${OFFICIAL_SPLITS.join(", ")}, directly or inside a json_… folder`;
  throw new EnvError(`alfworld: ${data} holds none of the splits ${wanted}; ${HOW_TO_GET_DATA}`);
}

function folders(path: string): readonly string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
      .map(({ name }) => name);
  } catch (error) {
    const reason = (error as Error).message;
    throw new EnvError(`alfworld: the folder ${path} cannot be read: ${reason}`, { cause: error });
  }
}

function readSplit(root: string, split: string): SplitList {
  const tasks: Task[] = [];
  let unsolvable = 0;
  for (const folder of [...folders(join(root, split))].sort()) {
    for (const trial of [...folders(join(root, split, folder))].sort()) {
      const id = `${split}/${folder}/${trial}`;
      const solvable = saysSolvable(join(root, id, GAME_FILE));
      if (solvable === false) unsolvable++;
      else if (solvable !== undefined) tasks.push({ id, split, type: taskType(folder) });
    }
  }
  return { tasks, unsolvable };
}

/** The family of a task: the start of its folder's name. */
function taskType(folder: string): string {
  return folder.split("-", 1)[0]!;
}

const TAIL_BYTES = 4096;
const SAYS_SOLVABLE = /(?<!\\)"solvable"\s*:\s*(true|false)/;

/**
 * Whether a game is marked as solvable; undefined if there is no game. A game that does not say, or
 * cannot be read, counts as solvable: it is listed, and the error comes when it is opened.
 */
function saysSolvable(file: string): boolean | undefined {
  let handle: number;
  try {
    handle = openRegular(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? undefined : true;
  }
  try {
    const { size } = fstatSync(handle);
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
    readSync(handle, tail, 0, tail.length, size - tail.length);
    // Inside a JSON text the quotes would be escaped, so this is the game's own field.
    const said = SAYS_SOLVABLE.exec(tail.toString("latin1"));
    const whole = said ?? SAYS_SOLVABLE.exec(readFileSync(handle, "latin1"));
    return whole?.[1] !== "false";
  } finally {
    closeSync(handle);
  }
}

/** A text inside a game file, such as its `pddl_domain`. */
export interface Source {
  readonly file: string;
  readonly part: string;
  readonly text: string;
}

/** An error with file, part and line. */
export function fault(source: Source, line: number, message: string): EnvError {
  return new EnvError(`${source.file}: ${source.part}, line ${line}: ${message}`);
}

/** The error for a JSON text that does not parse; `offset` is where it starts in its source. */
export function jsonFault(source: Source, json: string, offset: number, cause: unknown): EnvError {
  let { message } = cause as Error;
  try {
    // The engine's own messages do not always say where.
    parseJson(json);
  } catch (error) {
    message = (error as Error).message;
  }
  const at = Number(/ at character (\d+)$/.exec(message)?.[1] ?? 0);
  const error = fault(
    source,
    lineAt(source.text, offset + at),
    `this is not valid JSON: ${message}`,
  );
  error.cause = cause;
  return error;
}

/** The line (from 1) of an offset. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1))
    line++;
  return line;
}

/** A quoted excerpt of what was found, short enough for one line of an error. */
export function excerpt(text: string): string {
  const flat = text.replace(/\s+/g, " ");
  return `\`${flat.length > 60 ? `${flat.slice(0, 57)}...` : flat}\``;
}
