/**
 * TextWorld: text adventures, from the story files that `tw-make` writes, without Python. Every text
 * comes out of the story, and the list of admissible commands out of the world beside it. Without
 * story files there are made-up games, played by rules in the same language.
 *
 * Training sees the first room without the banner, with the objective as the goal (`opening: whole`
 * shows all of it); recorded traces are compared with everything the original shows.
 */

import { defineEnv } from "@pawl/core/envs/define-env.js";
import {
  begun,
  type Env,
  EnvError,
  type Environment,
  type StepResult,
  type Task,
} from "@pawl/core/envs/env.js";
import { taskLists } from "@pawl/core/envs/task-lists.js";
import type { EnvPrompt } from "@pawl/core/text/prompt.js";
import { z } from "zod";
import { createMemo } from "../alfworld/memo.js";
import { loadGame } from "./game.js";
import { type GameSource, openGames } from "./game-source.js";
import { MADE_UP } from "./made-up/made-up.js";
import { replayTextworld } from "./replay.js";
import type { Moment, Play } from "./turn-text.js";

/** A game to play, and how. */
interface Adventure {
  readonly task: Task;
  readonly play: Play;
  readonly opening: "room" | "whole";
  readonly reward: "score" | "success";
  readonly context: "none" | "facts";
}

/** A running game, with what its expert would type next. */
interface AdventureEnv extends Env {
  advice(): string;
}

interface Episode {
  readonly adventure: Adventure;
  readonly moment: Moment;
  /** The admissible commands, once they have been asked for. */
  listed?: readonly string[];
}

/** Commands that ask about files or end the program, which is not the player's to end. */
const REFUSED =
  /^(?:restart|quit|q|save|restore|script|transcript|unscript|verify|tw-\S*)(?:\s|$)/i;
const REFUSAL = "That command is not available here: play on, or use another one.";
const IRREVERSIBLE = /^(?:eat|drink|cook|chop|slice|dice|prepare)\b/i;

/** An environment that plays the adventures it is given tasks of. */
function createAdventureEnv(adventureOf: (id: string) => Adventure, from?: Episode): AdventureEnv {
  let episode = from;
  const current = (asked: string): Episode => begun(episode, "textworld", asked);
  const commands = (now: Episode): readonly string[] => {
    now.listed ??= now.adventure.play.game.tracker.commands(now.moment.facts);
    return now.listed;
  };
  return {
    get goal() {
      const { objective } = current("goal").adventure.play.game;
      return objective.trim() || "Find out what is to be done here, and do it.";
    },
    get taskType() {
      return current("taskType").adventure.task.type;
    },
    advice() {
      const { adventure, moment } = current("the expert");
      return adventure.play.advice(moment);
    },
    reset(task) {
      const adventure = adventureOf(task.id);
      const { start } = adventure.play;
      episode = { adventure, moment: start };
      return adventure.opening === "whole" ? start.observation : firstRoom(start.observation);
    },
    step(action): StepResult {
      const now = current("step");
      const { adventure, moment } = now;
      if (moment.won || moment.lost)
        throw new EnvError(
          "textworld: step was called after the episode was over; call reset(task).",
        );
      const command = action.trim();
      const { maxScore } = adventure.play.game;
      const share = (score: number): number =>
        maxScore > 0 && Number.isFinite(maxScore) ? Math.min(1, Math.max(0, score / maxScore)) : 0;
      if (REFUSED.test(command)) {
        const info = { valid: false, success: false, score: share(moment.score) };
        return { observation: REFUSAL, reward: 0, done: false, info };
      }
      const next = adventure.play.step(moment, command);
      const valid = next.acted || commands(now).includes(command);
      const { observation, won, lost, score } = next;
      episode = { adventure, moment: next };
      const reward = adventure.reward === "score" ? score - moment.score : won ? 1 : 0;
      const info = {
        valid,
        success: won,
        score: adventure.reward === "score" && !won ? share(score) : Number(won),
      };
      return { observation, reward, done: won || lost, info };
    },
    admissibleActions() {
      const now = current("admissibleActions");
      return now.moment.won || now.moment.lost ? [] : commands(now);
    },
    irreversible: (action) => IRREVERSIBLE.test(action.trim()),
    maxReturn() {
      const { reward, play } = current("maxReturn").adventure;
      const { maxScore } = play.game;
      return reward === "score" && maxScore > 0 && Number.isFinite(maxScore) ? maxScore : undefined;
    },
    initialContext() {
      const { adventure } = current("initialContext");
      const { tracker, world } = adventure.play.game;
      return adventure.context === "facts" ? `${tracker.readable(world).join(". ")}.` : undefined;
    },
    clone: () => createAdventureEnv(adventureOf, episode),
  };
}

/** The first observation without banner and objective: it begins with the name of the first room. */
function firstRoom(opening: string): string {
  const room = opening.search(/^-= /m);
  return room < 0 ? opening : opening.slice(room);
}

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
