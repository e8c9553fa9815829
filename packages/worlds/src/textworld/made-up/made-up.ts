/** The made-up games as lists of tasks: a game is drawn from its split and number. */

import type { Task } from "@pawl/core/envs/env.js";
import { createRandom, mixSeed, type Random } from "@pawl/core/random.js";
import { fact } from "../logic.js";
import {
  andList,
  CUTS,
  type Cut,
  createDraft,
  DIRECTIONS,
  type Draft,
  FOODS,
  FURNITURE,
  HEATS,
  type Heat,
  KEYS,
  type MadeGame,
  MORE_ROOMS,
  OPPOSITE,
  type Quest,
  ROOMS,
  THINGS,
  WAYS,
} from "./made-game.js";

// The families of made-up games, in the manner of TextWorld's: deliver food (tw-simple), find a coin
// in a maze (coin collector), fetch a treasure that is locked away (treasure hunter), and cook by a
// recipe (cooking). Objectives say where things are, so that the expert's way can be imitated.

/** A family's name and how its games are made. */
const families = { delivery, coin, treasure, cooking } as const;
type Family = keyof typeof families;
export const familyNames = Object.keys(families) as readonly Family[];

/** Where a thing may lie: in or on furniture. */
interface Spot {
  readonly how: "in" | "on";
  readonly name: string;
  readonly room: string;
}

const spots: readonly Spot[] = FURNITURE.flatMap(([name, type, room]) =>
  type === "c" || type === "s"
    ? [{ how: type === "c" ? ("in" as const) : ("on" as const), name, room }]
    : [],
);

function where({ how, name, room }: Spot): string {
  return `${how} the ${name} in the ${room}`;
}

/** Rooms beyond a door, seen from another room; the house is a tree. */
function beyond(door: string, start: string): ReadonlySet<string> {
  const reached = [start];
  for (const room of reached)
    for (const way of WAYS)
      if (way.door !== door && (way.from === room || way.to === room)) {
        const other = way.from === room ? way.to : way.from;
        if (!reached.includes(other)) reached.push(other);
      }
  return new Set(ROOMS.filter((room) => !reached.includes(room)));
}

/** A house with the player in it; what is not locked is open or closed by chance. */
function furnish(
  random: Random,
  start: string,
  locked: string | undefined,
  used: readonly string[],
): Draft {
  const draft = createDraft();
  const state = (name: string): string =>
    name === locked ? "locked" : random.int(2) === 0 ? "open" : "closed";
  for (const room of ROOMS) draft.add("r", room);
  for (const { from, direction, to, door } of WAYS)
    draft.connect(from, direction, to, door, door && state(door));
  for (const [name, type, room] of FURNITURE) {
    draft.add(type, name);
    draft.know("at", name, room);
    if (type === "c" || type === "w") draft.know(state(name), name);
  }
  draft.know("at", "P", start);
  // Things that have nothing to do with the objective.
  const others = random.shuffle([...FOODS, ...THINGS].filter((one) => !used.includes(one)));
  for (const name of others.slice(0, 3)) lay(draft, name, random.pick(spots));
  return draft;
}

function lay(draft: Draft, name: string, { how, name: holder }: Spot): void {
  const food = FOODS.includes(name);
  draft.add(food ? "f" : KEYS.includes(name) ? "k" : name === "knife" ? "n" : "o", name);
  draft.know(how, name, holder);
  if (!food) return;
  draft.know("raw", name);
  draft.know("uncut", name);
}

const carrying = (id: string): Quest => ({ wanted: [fact("in", [id, "I"])] });

function delivery(random: Random): MadeGame {
  const food = random.pick(FOODS);
  const target = random.pick(["stove", "table"]);
  const shut = random.int(2) === 0;
  const key = random.pick(KEYS);
  const draft = furnish(random, "bedroom", shut ? "oak door" : undefined, [food]);
  const from = random.pick(spots.filter(({ room, name }) => room !== "bedroom" && name !== target));
  lay(draft, food, from);
  const keySpot = random.pick(spots.filter(({ room }) => room === "bedroom"));
  if (shut) {
    lay(draft, key, keySpot);
    draft.know("fits", key, "oak door");
  }
  const unlock = shut ? `Unlock the oak door with the ${key} ${where(keySpot)}. ` : "";
  return draft.finish({
    family: "delivery",
    objective: `${unlock}Take the ${food} ${where(from)} and put it on the ${target} in the kitchen.`,
    quests: [
      ...(shut ? [carrying(key)] : []),
      carrying(food),
      { wanted: [fact("on", [food, target])] },
    ],
    fatal: [fact("eaten", [food])],
    recipe: NO_RECIPE,
  });
}

const NO_RECIPE = "Its pages are empty.";

function treasure(random: Random): MadeGame {
  const [prize, decoy] = random.shuffle([...THINGS]) as [string, string];
  const key = random.pick(KEYS);
  const start = random.pick(ROOMS);
  const from = random.pick(spots.filter(({ room }) => room !== start));
  // A container is locked, or a door on the way to it.
  const doors = WAYS.flatMap(({ door }) =>
    door !== undefined && beyond(door, start).has(from.room) ? [door] : [],
  );
  const locks = [...doors, ...(from.how === "in" ? [from.name] : [])];
  const lock = locks.length === 0 ? undefined : random.pick(locks);
  const unreachable = lock === undefined ? new Set<string>() : beyond(lock, start);
  const reachable = spots.filter(({ room, name }) => !unreachable.has(room) && name !== lock);
  const draft = furnish(random, start, lock, [prize, decoy]);
  lay(draft, prize, from);
  lay(draft, decoy, random.pick(spots));
  const keySpot = random.pick(reachable);
  if (lock !== undefined) {
    lay(draft, key, keySpot);
    draft.know("fits", key, lock);
  }
  const unlock = lock === undefined ? "" : `The ${key} ${where(keySpot)} unlocks the ${lock}. `;
  return draft.finish({
    family: "treasure",
    objective: `Take the ${prize} ${where(from)}. ${unlock}Do not take the ${decoy}.`,
    quests: [...(lock === undefined ? [] : [carrying(key)]), carrying(prize)],
    fatal: [fact("in", [decoy, "I"])],
    recipe: NO_RECIPE,
  });
}

const DEEPEST_MAZE = 6;

/** A maze is a path through rooms with dead ends at its sides. */
function coin(random: Random): MadeGame {
  const draft = createDraft();
  const names = random.shuffle([...ROOMS, ...MORE_ROOMS]);
  const length = 2 + random.int(DEEPEST_MAZE - 1);
  const start = names.pop()!;
  draft.add("r", start);
  draft.know("at", "P", start);
  let here = start;
  let back: string | undefined;
  const walked: string[] = [];
  for (let step = 0; step < length; step++) {
    const [direction, aside] = random.shuffle(DIRECTIONS.filter((one) => one !== back));
    const next = names.pop()!;
    draft.add("r", next);
    draft.connect(here, direction!, next);
    if (random.int(2) === 0 && names.length > length - step) {
      const end = names.pop()!;
      draft.add("r", end);
      draft.connect(here, aside!, end);
    }
    walked.push(direction!);
    back = OPPOSITE[direction!];
    here = next;
  }
  draft.add("o", "coin");
  draft.know("at", "coin", here);
  return draft.finish({
    family: "coin",
    objective: `Go ${andList(walked)}, and take the coin.`,
    quests: [carrying("coin")],
    fatal: [],
    recipe: NO_RECIPE,
  });
}

function cooking(random: Random): MadeGame {
  const foods = random.shuffle([...FOODS]).slice(0, 1 + random.int(2));
  const draft = furnish(random, random.pick(ROOMS), undefined, foods);
  const knife = random.pick(spots);
  lay(draft, "knife", knife);
  const dishes = foods.map((food) => {
    const from = random.pick(spots.filter(({ name }) => name !== "table"));
    lay(draft, food, from);
    const cut = random.pick([undefined, ...(Object.keys(CUTS) as Cut[])]);
    const heat = random.pick([undefined, ...(Object.keys(HEATS) as Heat[])]);
    return { food, from, states: [cut, heat].filter((one) => one !== undefined) };
  });
  const cut = dishes.some(({ states }) => states.some((one) => one in CUTS));
  return draft.finish({
    family: "cooking",
    objective: "Read the cookbook in the kitchen, do what it says, and put it on the table there.",
    quests: [
      { wanted: [fact("read", ["cookbook"])] },
      ...dishes.map(({ food, states }) => ({
        wanted: [...states.map((state) => fact(state, [food])), fact("on", [food, "table"])],
      })),
    ],
    fatal: dishes.flatMap(({ food, states }) =>
      ["eaten", ...Object.keys(CUTS), ...Object.keys(HEATS)]
        .filter((state) => !(states as readonly string[]).includes(state))
        .map((state) => fact(state, [food])),
    ),
    recipe: [
      ...dishes.map(
        ({ food, from, states }) =>
          `${["The", food, andList(states)].join(" ").trim()}: it is ${where(from)}.`,
      ),
      ...(cut ? [`The knife is ${where(knife)}.`] : []),
    ].join(" "),
  });
}

/** What `data` is called for these games. */
export const MADE_UP = "made-up";

/** Sizes of the splits, as in Word-to-World; `valid` is for choosing settings. */
export const madeUpSplits: Readonly<Record<string, number>> = {
  train: 2500,
  valid: 200,
  test: 200,
};

/** The most points that a game has. */
export const MOST_POINTS = 3;

/** The tasks of a split; families take turns. */
export function madeUpTasks(split: string): readonly Task[] {
  return Array.from({ length: madeUpSplits[split]! }, (_, index) => {
    const type = familyNames[index % familyNames.length]!;
    return { id: `${split}/${type}-${index}`, split, type };
  });
}

/** The game of a task. */
export function madeUpGame({ id, type }: Task): MadeGame {
  return families[type as Family](createRandom(mixSeed(MADE_UP, id)));
}
