/**
 * TextWorld: text adventures, from the story files that `tw-make` writes, without Python. Every text
 * comes out of the story, and the list of admissible commands out of the world beside it.
 *
 * Training sees the first room without the banner, with the objective as the goal (`opening: whole`
 * shows all of it); recorded traces are compared with everything the original shows.
 */
import { z } from "zod";
import { createMemo } from "../alfworld/memo.js";
import { defineEnv } from "../define-env.js";
import { type Env, EnvError, type Environment } from "../env.js";
import { taskLists } from "../task-lists.js";
import { type Adventure, type AdventureEnv, createAdventureEnv } from "./adventure-env.js";
import { loadGame } from "./game.js";
import { type GameFolder, HOW_TO_GET_GAMES, type ListedGame, openGameFolder } from "./games.js";
import { startPlay } from "./play.js";
import { adventurePrompt } from "./prompt.js";
import { replayTextworld } from "./replay.js";

const STEP_LIMIT = 50;
/** Cached games: the episodes of a group play the same one. */
const GAMES_KEPT = 32;

/** The options of TextWorld. */
export const textworldOptions = z.strictObject({
  data: z
    .string()
    .optional()
    .describe("folder of games, .z8 and .json (default: $TEXTWORLD_GAMES)"),
  types: z
    .array(z.string())
    .min(1)
    .optional()
    .describe("include only these families, such as tw-simple (default: all)"),
  style: z
    .enum(["by-name", "tw", "plain"])
    .default("by-name")
    .describe(
      "observations without (tw) or with (plain) the prompt and the status line; by-name: tw for files called tw-…, as the original",
    ),
  opening: z
    .enum(["room", "whole"])
    .default("room")
    .describe("the first observation: the first room, or the whole opening with its banner"),
  reward: z
    .enum(["score", "success"])
    .default("score")
    .describe("what is rewarded: every point of the game's score, or 1 for winning"),
  context: z
    .enum(["none", "facts"])
    .default("none")
    .describe(
      "what a world model may know besides: nothing, as in Word-to-World, or the facts at the start",
    ),
});

type Options = z.output<typeof textworldOptions>;

/** TextWorld, for the registry. */
export const textworld = defineEnv({
  name: "textworld",
  summary: "TextWorld's text adventures from its story files, answered exactly, in-process",
  options: textworldOptions,
  open,
  describe,
});

function folderOf(options: Options): string | undefined {
  return options.data ?? process.env.TEXTWORLD_GAMES;
}

function open(options: Options): Environment {
  const folder = openGameFolder(folderOf(options));
  const listed = new Map(
    folder.splits.map((split) => [split, () => gamesOf(folder, split, options)]),
  );
  const lists = taskLists(
    "textworld",
    Object.fromEntries(
      [...listed].map(([split, games]) => [split, () => games().map(({ task }) => task)]),
    ),
  );
  const adventures = createMemo<Adventure>(GAMES_KEPT);
  const playing = new Map<string, WeakRef<Adventure>>();
  const adventureOf = (id: string): Adventure => {
    const { split } = lists.task(id);
    const { task, file } = listed.get(split)!().find((game) => game.task.id === id)!;
    // A game that somebody plays is shared, even if it is no longer kept.
    const live = playing.get(id)?.deref();
    return adventures(id, () => {
      if (live !== undefined) return live;
      const game = loadGame(file);
      const style = options.style === "by-name" ? (game.named ? "tw" : "plain") : options.style;
      const play = startPlay(game, { style, tracked: false });
      const adventure = { task, play, ...options };
      playing.set(id, new WeakRef(adventure));
      return adventure;
    });
  };
  return {
    name: "textworld",
    ...lists,
    stepLimit: STEP_LIMIT,
    get maxReturn() {
      return options.reward === "success" ? 1 : largestScore(folder, options);
    },
    whiteSpace: "collapse",
    prompt: adventurePrompt,
    create: () => createAdventureEnv(adventureOf),
    expert(env: Env) {
      if (!("walkthrough" in env))
        throw new EnvError("The textworld expert plays textworld environments only, unwrapped.");
      return (env as AdventureEnv).walkthrough();
    },
    replayRecords: (records) => replayTextworld(records, (name) => loadGame(folder.find(name))),
  };
}

/** The games of a split that the options choose; a type that no game has is an error. */
function gamesOf(folder: GameFolder, split: string, { types }: Options): readonly ListedGame[] {
  const games = folder.list(split);
  if (types === undefined) return games;
  const chosen = games.filter(({ task }) => types.includes(task.type));
  if (chosen.length > 0) return chosen;
  const present = [...new Set(games.map(({ task }) => task.type))].sort();
  throw new EnvError(
    `textworld: ${split} in ${folder.root} has no games of ${types.join(" or ")}; it has ${present.join(", ")}`,
  );
}

function largestScore(folder: GameFolder, options: Options): number {
  const games = folder.splits.flatMap((split) => gamesOf(folder, split, options));
  const endless = games.find(({ summary }) => summary.maxScore === Number.POSITIVE_INFINITY);
  if (endless !== undefined)
    throw new EnvError(
      `textworld: ${endless.file} has a quest that can be repeated, so there is no largest score; use reward: success`,
    );
  return Math.max(...games.map(({ summary }) => summary.maxScore));
}

function describe(options: Options): readonly string[] {
  let folder: GameFolder;
  try {
    folder = openGameFolder(folderOf(options));
  } catch (error) {
    if (error instanceof EnvError) return [error.message];
    throw error;
  }
  const from = options.data === undefined ? "TEXTWORLD_GAMES" : "the option data";
  return [
    `games: ${folder.root} (from ${from})`,
    ...folder.splits.map((split) => describeSplit(folder, split)),
    `to get more: ${HOW_TO_GET_GAMES}`,
  ];
}

function describeSplit(folder: GameFolder, split: string): string {
  const games = folder.list(split);
  const counts = new Map<string, number>();
  for (const { task } of games) counts.set(task.type, (counts.get(task.type) ?? 0) + 1);
  const types = [...counts].sort().map(([type, count]) => `${type} ${count}`);
  return `${split}: ${games.length} games (${types.join(", ")})`;
}
