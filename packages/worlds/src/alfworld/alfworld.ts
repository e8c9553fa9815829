/**
 * ALFWorld: household tasks in text, from the official game files, without Python.
 *
 * Training sees a game without its banner, with the task separated from the surroundings and
 * without the `help` command among the actions; `traceWorld` shows it as the original does.
 */

import { defineEnv } from "@pawl/core/envs/define-env.js";
import {
  begun,
  type Env,
  EnvError,
  type Environment,
  type StepResult,
  type Task,
  type TraceState,
  type TraceWorld,
} from "@pawl/core/envs/env.js";
import { housePrompt } from "@pawl/core/envs/household/prompt.js";
import { taskLists } from "@pawl/core/envs/task-lists.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import { didYouMean } from "@pawl/core/text/nearest.js";
import { z } from "zod";
import { createGuide, type Guide } from "./expert.js";
import { type Game, loadGame, type Play, startPlay } from "./game.js";
import {
  type GameFolder,
  gameFile,
  gameId,
  HOW_TO_GET_DATA,
  OFFICIAL_SIZES,
  openGameFolder,
} from "./games.js";
import { createMemo } from "./memo.js";
import { factHolds } from "./state.js";

// What a world model may know about the initial state: whether each place is closed and what it
// holds. The only file that knows words of the domain: a game whose domain lacks them has no such
// context.

const WORDS = {
  /** The type of places that hold things. */
  place: "receptacle",
  /** `(contains thing place)`. */
  contains: "inreceptacle",
  /** `(canOpen place)`, and `(isOpen place)` where it is open. */
  canOpen: "openable",
  isOpen: "opened",
};

/**
 * The places of a game at the start, in the words and in the order in which visiting and opening
 * them shows them, so that a model only needs to remember, not to rephrase.
 */
function initialContext(game: Game): string | undefined {
  const { world, names } = game;
  const contains = world.domain.predicateIndex.get(WORDS.contains);
  if (contains === undefined || world.domain.predicates[contains]!.arity !== 2) return undefined;
  const contents = new Map<number, number[]>();
  for (const key of world.initial[contains]!) {
    const place = key % world.objects.count;
    const things = contents.get(place) ?? [];
    things.push(Math.floor(key / world.objects.count));
    contents.set(place, things);
  }
  const holds = (predicate: string, place: number) =>
    factHolds(world, world.initial, predicate, [place]);
  const places = world.objects.ofType(WORDS.place).objects.map((place) => {
    const name = names[place]!;
    const seen = `you see ${inWords((contents.get(place) ?? []).map((thing) => names[thing]!))}.`;
    if (!holds(WORDS.canOpen, place)) return `On the ${name}, ${seen}`;
    return `The ${name} is ${holds(WORDS.isOpen, place) ? "open" : "closed"}. In it, ${seen}`;
  });
  return places.length === 0 ? undefined : places.join(" ");
}

function inWords(things: readonly string[]): string {
  if (things.length === 0) return "nothing";
  const items = things.map((thing) => `a ${thing}`);
  const last = items.pop()!;
  return items.length === 0 ? last : `${items.join(", ")}, and ${last}`;
}

const stepLimit = 50;
const successReward = 10;
/** The command that explains the game to people; it is never an action of an agent. */
const HELP = "help";
/** Cached games, 0.3 MB each: groups play the same one, evaluations and sessions come back to them. */
const GAMES_KEPT = 256;

/** The options of ALFWorld. */
const alfworldOptions = z.strictObject({
  data: z.string().optional().describe("folder of the official download (default: $ALFWORLD_DATA)"),
  types: z
    .array(z.string())
    .min(1)
    .optional()
    .describe("include only these task types, such as pick_and_place_simple (default: all)"),
  order: z
    .int()
    .optional()
    .describe("shuffle every task list with this seed (default: sorted by path)"),
});

/** ALFWorld, opened. */
export interface AlfworldEnvironment extends Environment {
  /** The number of games of a split that are left out because they cannot be solved. */
  unsolvable(split: string): number;
  /** The game at a path such as `valid_seen/<type>-…/<trial>/game.tw-pddl`, as in the original. */
  traceWorld(game: string): TraceWorld;
}

/** A running game, with what its expert sees. */
interface AlfworldEnv extends Env {
  readonly guide: Guide;
}

/** ALFWorld, for the registry. */
export const alfworld = defineEnv({
  name: "alfworld",
  summary: "ALFWorld's household tasks from the official games, answered exactly, in-process",
  options: alfworldOptions,
  open: openAlfworld,
  describe,
});

type Options = z.output<typeof alfworldOptions>;

function dataFolder(options: Options): string | undefined {
  return options.data ?? process.env.ALFWORLD_DATA;
}

/** Opens ALFWorld; games are read when they are played. */
export function openAlfworld(options: Options): AlfworldEnvironment {
  const folder = openGameFolder(dataFolder(options));
  checkTypes(folder, options);
  const listed = folder.splits.map((split) => {
    return [split, () => arrange(folder.list(split).tasks, split, options)] as const;
  });
  const lists = taskLists("alfworld", Object.fromEntries(listed));
  const games = createMemo<Game>(GAMES_KEPT);
  const gameOf = (id: string): Game =>
    games(lists.task(id).id, () => loadGame(gameFile(folder, id)));
  return {
    name: "alfworld",
    splits: folder.splits,
    stepLimit,
    maxReturn: successReward,
    whiteSpace: "collapse",
    prompt: housePrompt,
    tasks(split) {
      folder.list(split); // names what is missing from the download
      const tasks = lists.tasks(split);
      if (tasks.length === 0) {
        const types = options.types?.join(" or ") ?? "any type";
        throw new EnvError(`alfworld: ${split} has no tasks of ${types} in ${folder.root}`);
      }
      return tasks;
    },
    task: lists.task,
    create: () => createEnv(gameOf),
    expert(env: Env) {
      if (!isAlfworld(env))
        throw new EnvError("The alfworld expert plays alfworld environments only, unwrapped.");
      return env.guide.next();
    },
    unsolvable: (split) => folder.list(split).unsolvable,
    traceWorld: (path) => rawGame(gameOf(gameId(path))),
  };
}

/** Rejects a type that no split has: it would silently select nothing. */
function checkTypes(folder: GameFolder, options: Options): void {
  const present = options.types === undefined ? [] : folder.types();
  const unknown = options.types?.find((type) => !present.includes(type));
  if (unknown !== undefined) {
    const known = `it has ${present.join(", ")}.${didYouMean(unknown, present)}`;
    throw new EnvError(`alfworld has no tasks of type "${unknown}"; ${known}`);
  }
}

/** Filters the tasks by type and sorts or shuffles them. */
function arrange(tasks: readonly Task[], split: string, options: Options): readonly Task[] {
  const { types, order } = options;
  const chosen = tasks.filter(({ type }) => types === undefined || types.includes(type));
  return order === undefined ? chosen : createRandom(mixSeed(order, split)).shuffle(chosen);
}

function isAlfworld(env: Env): env is AlfworldEnv {
  return "guide" in env;
}

/** A game as in recorded traces: with banner, task and `help`. */
function rawGame(game: Game): TraceWorld {
  let play = startPlay(game);
  const state = (obs: string): TraceState => {
    return { obs, admissible: play.commands(), done: play.won, won: play.won };
  };
  return {
    start() {
      play = startPlay(game);
      return state(game.opening);
    },
    step: (action) => state(play.step(action).text),
  };
}

/** A started episode: its task, the state of its game, and whether it is over. */
interface Begun {
  readonly task: Task;
  readonly play: Play;
  readonly guide: Guide;
  over: boolean;
}

function createEnv(gameOf: (id: string) => Game, from?: Begun): AlfworldEnv {
  let episode = from;
  let listed: readonly string[] | undefined;
  const current = (asked: string): Begun => begun(episode, "alfworld", asked);
  return {
    get goal() {
      return goalOf(current("goal").play.game);
    },
    get taskType() {
      return current("taskType").task.type;
    },
    get guide() {
      return current("the expert").guide;
    },
    reset(task) {
      const play = startPlay(gameOf(task.id));
      episode = { task, play, guide: createGuide(play), over: false };
      listed = undefined;
      return play.game.surroundings;
    },
    step(action): StepResult {
      const now = current("step");
      const { play, guide } = now;
      if (now.over)
        throw new EnvError(
          "alfworld: step was called after the episode was over; call reset(task).",
        );
      const answer = play.step(action);
      const valid = answer.action !== undefined;
      if (answer.action !== undefined) {
        listed = undefined;
        guide.saw(action.trim(), answer.action);
      }
      const success = play.won;
      now.over = success;
      const info = { valid, success, score: success ? 1 : 0 };
      const reward = success ? successReward : 0;
      return { observation: answer.text, reward, done: success, info };
    },
    admissibleActions() {
      const { play, over } = current("admissibleActions");
      listed ??= over ? [] : play.commands().filter((command) => command !== HELP);
      return listed;
    },
    initialContext: () => initialContext(current("initialContext").play.game),
    clone() {
      if (episode === undefined) return createEnv(gameOf);
      const play = episode.play.clone();
      return createEnv(gameOf, { ...episode, play, guide: episode.guide.clone(play) });
    },
  };
}

/** The task in words: what follows the colon in the game's task sentence. */
function goalOf(game: Game): string {
  const sentence = game.task ?? "";
  const colon = sentence.indexOf(": ");
  return (colon === -1 ? sentence : sentence.slice(colon + 2)).trim();
}

function describe(options: Options): readonly string[] {
  const folder = openGameFolder(dataFolder(options));
  const from = options.data === undefined ? "ALFWORLD_DATA" : "the option data";
  return [
    `data: ${folder.root} (from ${from})`,
    ...[...OFFICIAL_SIZES].flatMap(([split, size]) =>
      folder.splits.includes(split)
        ? describeSplit(folder, split, size)
        : [`${split}: missing; the full download has ${size} games`],
    ),
    `to get the data: ${HOW_TO_GET_DATA}`,
  ];
}

/** Counts a split and opens its first game, so that a wrong download shows at once. */
function describeSplit(folder: GameFolder, split: string, size: number): readonly string[] {
  const { tasks, unsolvable } = folder.list(split);
  const counts = new Map<string, number>();
  for (const { type } of tasks) counts.set(type, (counts.get(type) ?? 0) + 1);
  const types = [...counts].sort().map(([type, count]) => `${type} ${count}`);
  const left = unsolvable === 0 ? "" : `; ${unsolvable} unsolvable ones left out`;
  const short = tasks.length + unsolvable < size ? `; the full download has ${size}` : "";
  const lines = [`${split}: ${tasks.length} games (${types.join(", ")})${left}${short}`];
  const first = tasks[0];
  if (first !== undefined) {
    try {
      loadGame(gameFile(folder, first.id));
    } catch (error) {
      if (!(error instanceof EnvError)) throw error;
      lines.push(`${split}: its first game does not load: ${error.message}`);
    }
  }
  return lines;
}
