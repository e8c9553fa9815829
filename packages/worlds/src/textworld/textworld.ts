/**
 * TextWorld: text adventures, from the story files that `tw-make` writes, without Python. Every text
 * comes out of the story, and the list of admissible commands out of the world beside it. Without
 * story files there are made-up games, played by rules in the same language.
 *
 * Training sees the first room without the banner, with the objective as the goal (`opening: whole`
 * shows all of it); recorded traces are compared with everything the original shows.
 */

import { defineEnv } from "@pawl/core/envs/define-env.js";
import { type Env, EnvError, type Environment } from "@pawl/core/envs/env.js";
import { taskLists } from "@pawl/core/envs/task-lists.js";
import type { EnvPrompt } from "@pawl/core/text/prompt.js";
import { z } from "zod";
import { createMemo } from "../alfworld/memo.js";
import { type Adventure, type AdventureEnv, createAdventureEnv } from "./adventure-env.js";
import { loadGame } from "./game.js";
import { type GameSource, openGames } from "./game-source.js";
import { MADE_UP } from "./made-up/made-up.js";
import { replayTextworld } from "./replay.js";

/** A text adventure. */
const adventurePrompt: EnvPrompt = {
  instructions:
    "You play a text adventure. You walk through rooms, look at things and use them by short commands, one at a time.",
  advice: "First reason step by step about what is left to do and where things are",
};

const STEP_LIMIT = 50;
/** Cached games: the episodes of a group play the same one. */
const GAMES_KEPT = 32;

/** The options of TextWorld. */
const textworldOptions = z.strictObject({
  data: z
    .string()
    .optional()
    .describe(
      `folder of games, .z8 and .json; ${MADE_UP} for games of our own (default: $TEXTWORLD_GAMES, or ${MADE_UP})`,
    ),
  types: z
    .array(z.string())
    .min(1)
    .optional()
    .describe(
      "include only these families, such as tw-simple, or delivery of the made-up ones (default: all)",
    ),
  style: z
    .enum(["by-name", "tw", "plain"])
    .default("by-name")
    .describe(
      "whether observations lack prompt and status line (tw) or not (plain); by-name: as the original, tw for files called tw-…",
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
      "what else a world model may know: nothing, as in Word-to-World, or the facts at the start",
    ),
});

type Options = z.output<typeof textworldOptions>;

/** TextWorld, for the registry. */
export const textworld = defineEnv({
  name: "textworld",
  summary: "TextWorld's text adventures from its story files, answered exactly; or made-up ones",
  options: textworldOptions,
  open,
  describe,
});

function dataOf(options: Options): string {
  return options.data ?? (process.env.TEXTWORLD_GAMES || MADE_UP);
}

function open(options: Options): Environment {
  const games = openGames(dataOf(options), options.types);
  const lists = taskLists(
    "textworld",
    Object.fromEntries(games.splits.map((split) => [split, () => games.tasks(split)])),
  );
  const adventures = createMemo<Adventure>(GAMES_KEPT);
  const playing = new Map<string, WeakRef<Adventure>>();
  const adventureOf = (id: string): Adventure => {
    const task = lists.task(id);
    // A game that somebody plays is shared, even if it is no longer kept.
    const live = playing.get(id)?.deref();
    return adventures(id, () => {
      if (live !== undefined) return live;
      const adventure = { task, play: games.start(task, options.style), ...options };
      playing.set(id, new WeakRef(adventure));
      return adventure;
    });
  };
  return {
    name: "textworld",
    ...lists,
    stepLimit: STEP_LIMIT,
    get maxReturn() {
      return options.reward === "success" ? 1 : games.maxScore();
    },
    whiteSpace: "collapse",
    prompt: adventurePrompt,
    create: () => createAdventureEnv(adventureOf),
    expert(env: Env) {
      if (!("advice" in env))
        throw new EnvError("The textworld expert plays textworld environments only, unwrapped.");
      return (env as AdventureEnv).advice();
    },
    replayRecords: (records) => replayTextworld(records, (name) => loadGame(games.find(name))),
  };
}

function describe(options: Options): readonly string[] {
  const games = openGames(dataOf(options), undefined);
  const from =
    options.data !== undefined
      ? "the option data"
      : process.env.TEXTWORLD_GAMES
        ? "TEXTWORLD_GAMES"
        : "the default: neither data nor TEXTWORLD_GAMES is set";
  return [
    `games: ${games.about} (from ${from})`,
    ...games.splits.map((split) => describeSplit(games, split)),
    games.howToGetMore,
  ];
}

function describeSplit(games: GameSource, split: string): string {
  const tasks = games.tasks(split);
  const counts = new Map<string, number>();
  for (const { type } of tasks) counts.set(type, (counts.get(type) ?? 0) + 1);
  const types = [...counts].sort().map(([type, count]) => `${type} ${count}`);
  return `${split}: ${tasks.length} games (${types.join(", ")})`;
}
