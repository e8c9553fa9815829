/** Where games come from: a folder of story files, or made up. */
import { EnvError, type Task } from "@pawl/core/envs/env.js";
import { loadGame } from "./game.js";
import { HOW_TO_GET_GAMES, type ListedGame, openGameFolder } from "./games.js";
import { startMadePlay } from "./made-up/made-play.js";
import { MADE_UP, MOST_POINTS, madeUpGame, madeUpSplits, madeUpTasks } from "./made-up/made-up.js";
import type { Play } from "./moment.js";
import { startPlay } from "./play.js";
import type { ObservationStyle } from "./turn-text.js";

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
