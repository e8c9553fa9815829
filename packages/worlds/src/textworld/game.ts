/** A game of TextWorld: the story file and, beside it, the world it was made from. */
import { basename } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import { readRegular, readRegularText } from "@pawl/core/files/regular-file.js";
import { z } from "zod";
import { createMemo } from "../alfworld/memo.js";
import { collectFacts, fact, type Logic, parseLogic } from "./logic.js";
import { createTracker, type Entity } from "./tracker.js";
import type { PlayedGame } from "./turn-text.js";
import { createPlayer, type Player } from "./zmachine/compiled.js";
import { createMachine, type Machine } from "./zmachine/machine.js";
import { readStory } from "./zmachine/story.js";

/** The extension of a story file. */
export const STORY_FILE = ".z8";

const variable = z.object({ name: z.string(), type: z.string() });
const gameSchema = z.object({
  world: z.array(z.object({ name: z.string(), arguments: z.array(variable) })),
  infos: z.array(
    z.tuple([
      z.string(),
      z.object({ id: z.string(), type: z.string(), name: z.string().nullish() }),
    ]),
  ),
  quests: z.array(
    z.object({
      reward: z.number(),
      optional: z.boolean().default(false),
      repeatable: z.boolean().default(false),
    }),
  ),
  KB: z.object({ logic: z.string() }),
  metadata: z.object({
    uuid: z.string().default(""),
    walkthrough: z.array(z.string()).nullish(),
  }),
  objective: z.string().default(""),
});

/** What the list of games says of one; the story is not read for it. */
export interface GameSummary {
  /** The family, such as `tw-simple`. */
  readonly family: string;
  /** The largest score; infinite if a quest can be repeated. */
  readonly maxScore: number;
}

/** A game, ready to be played. */
export interface Game extends GameSummary, PlayedGame {
  readonly file: string;
  /** Runs the story for everyone who plays the game. */
  readonly machine: Machine;
  readonly player: Player;
  /** Commands that win; empty if the game was made without. */
  readonly walkthrough: readonly string[];
  /** Whether the name begins with `tw-`: the original then shows observations without status line. */
  readonly named: boolean;
}

/** Games of a family have the same rules. */
const LOGICS_KEPT = 8;
const logics = createMemo<Logic>(LOGICS_KEPT);

/** Reads what a list needs of the game whose story is `file`. */
export function summarizeGame(file: string): GameSummary {
  return summary(readWorld(file));
}

/** Reads the game whose story is `file`. */
export function loadGame(file: string): Game {
  const world = readWorld(file);
  let image: Uint8Array;
  try {
    image = readRegular(file);
  } catch (error) {
    throw new EnvError(`${file}: the story cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const json = worldFile(file);
  const entities = new Map<string, Entity>();
  for (const { arguments: ids } of world.world)
    for (const { name, type } of ids) entities.set(name, { type, name });
  for (const [, { id, type, name }] of world.infos) entities.set(id, { type, name: name || id });
  const facts = world.world.map(({ name, arguments: ids }) =>
    fact(
      name,
      ids.map((one) => one.name),
    ),
  );
  const machine = createMachine(readStory(file, image));
  return {
    ...summary(world),
    file,
    machine,
    player: createPlayer(machine),
    tracker: createTracker(
      logics(world.KB.logic, () => parseLogic(json, world.KB.logic)),
      entities,
    ),
    world: collectFacts(facts),
    objective: world.objective,
    walkthrough: world.metadata.walkthrough ?? [],
    named: basename(file).startsWith("tw-"),
  };
}

type World = z.output<typeof gameSchema>;

function summary({ metadata, quests }: World): GameSummary {
  const counted = quests.filter(({ optional, reward }) => !optional || reward > 0);
  const repeatable = counted.some((quest) => quest.repeatable);
  return {
    family: familyOf(metadata.uuid),
    maxScore: repeatable
      ? Number.POSITIVE_INFINITY
      : counted.reduce((sum, { reward }) => sum + reward, 0),
  };
}

/** The first part of a game's identifier: `tw-simple` of `tw-simple-rDense+…`. */
function familyOf(uuid: string): string {
  const [, name = ""] = /^tw-([a-z_]+)-/.exec(uuid) ?? [];
  // A custom game's first part says its settings in code.
  return name === "" ? "tw-custom" : `tw-${name}`;
}

function worldFile(story: string): string {
  return `${story.slice(0, -STORY_FILE.length)}.json`;
}

function readWorld(story: string): World {
  const file = worldFile(story);
  let text: string;
  try {
    text = readRegularText(file);
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    throw new EnvError(
      missing
        ? `${story}: its world is missing: expected ${file} beside it; tw-make writes both`
        : `${file}: cannot be read: ${(error as Error).message}`,
      { cause: error },
    );
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new EnvError(`${file}: not JSON: ${(error as Error).message}`, { cause: error });
  }
  const parsed = gameSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  throw new EnvError(
    `${file}: not a game of TextWorld 1.x: ${issue.path.join(".") || "the file"}: ${issue.message}`,
  );
}
