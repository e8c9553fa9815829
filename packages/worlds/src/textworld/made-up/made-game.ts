/** A made-up game: what there is, what is to be done, and what loses. */
import { collectFacts, type Fact, type Facts, fact, parseLogic } from "../logic.js";
import { createTracker, type Entity, type Tracker } from "../tracker.js";
import type { PlayedGame } from "../turn-text.js";

/** P: player, I: inventory, r: room, x: direction, d: door, c: container, w: oven, s: supporter,
 * v: stove, o: what can be carried, f: food, k: key, n: knife, b: cookbook. */
const TEXT = `
type r { } type x { } type d { } type b { }
type c { } type w : c { } type s { } type v : s { }
type o { } type f : o { } type k : o { } type n : o { }
type P {
  rules {
    look :: at(P, r) -> at(P, r);
    inventory :: at(P, r) -> at(P, r);
    go :: at(P, r) & $exit(r, x, r') & $free(r, r') -> at(P, r');
    door/unlock :: $at(P, r) & $door(r, d, r') & locked(d) & $fits(k, d) & $in(k, I) -> closed(d);
    door/open :: $at(P, r) & $door(r, d, r') & closed(d) -> open(d) & free(r, r') & free(r', r);
    door/close :: $at(P, r) & $door(r, d, r') & open(d) & free(r, r') & free(r', r) -> closed(d);
    unlock :: $at(P, r) & $at(c, r) & locked(c) & $fits(k, c) & $in(k, I) -> closed(c);
    open :: $at(P, r) & $at(c, r) & closed(c) -> open(c);
    close :: $at(P, r) & $at(c, r) & open(c) -> closed(c);
    take :: $at(P, r) & at(o, r) -> in(o, I);
    take/from/c :: $at(P, r) & $at(c, r) & $open(c) & in(o, c) -> in(o, I);
    take/from/s :: $at(P, r) & $at(s, r) & on(o, s) -> in(o, I);
    drop :: $at(P, r) & in(o, I) -> at(o, r);
    insert :: $at(P, r) & $at(c, r) & $open(c) & in(o, I) -> in(o, c);
    put :: $at(P, r) & $at(s, r) & in(o, I) -> on(o, s);
    eat :: in(f, I) -> eaten(f);
    chop :: $in(f, I) & $in(n, I) & uncut(f) -> chopped(f);
    dice :: $in(f, I) & $in(n, I) & uncut(f) -> diced(f);
    slice :: $in(f, I) & $in(n, I) & uncut(f) -> sliced(f);
    fry :: $at(P, r) & $at(v, r) & $in(f, I) & raw(f) -> fried(f);
    roast :: $at(P, r) & $at(w, r) & $in(f, I) & raw(f) -> roasted(f);
    read :: $at(P, r) & $at(b, r) -> read(b);
  }
  inform7 { commands {
    look :: "look" :: "You look around.";
    inventory :: "inventory" :: "You look at what you carry.";
    go :: "go {x}" :: "You go {x}.";
    door/unlock :: "unlock {d} with {k}" :: "You unlock the {d} with the {k}.";
    door/open :: "open {d}" :: "You open the {d}.";
    door/close :: "close {d}" :: "You close the {d}.";
    unlock :: "unlock {c} with {k}" :: "You unlock the {c} with the {k}.";
    open :: "open {c}" :: "You open the {c}.";
    close :: "close {c}" :: "You close the {c}.";
    take :: "take {o}" :: "You pick up the {o}.";
    take/from/c :: "take {o} from {c}" :: "You take the {o} from the {c}.";
    take/from/s :: "take {o} from {s}" :: "You take the {o} from the {s}.";
    drop :: "drop {o}" :: "You drop the {o}.";
    insert :: "insert {o} into {c}" :: "You lay the {o} into the {c}.";
    put :: "put {o} on {s}" :: "You put the {o} on the {s}.";
    eat :: "eat {f}" :: "You eat the {f}.";
    chop :: "chop {f} with {n}" :: "You chop the {f} with the {n}.";
    dice :: "dice {f} with {n}" :: "You dice the {f} with the {n}.";
    slice :: "slice {f} with {n}" :: "You slice the {f} with the {n}.";
    fry :: "cook {f} with {v}" :: "You fry the {f} on the {v}.";
    roast :: "cook {f} with {w}" :: "You roast the {f} in the {w}.";
    read :: "read {b}" :: "You read the {b}.";
  } }
}`;

/** What can be done in every made-up game. */
const rules = parseLogic("the rules of made-up games", TEXT);

/** How food is cut, and how it is cooked, with the command for each. */
export const CUTS = { chopped: "chop", diced: "dice", sliced: "slice" } as const;
export const HEATS = { fried: "stove", roasted: "oven" } as const;
export type Cut = keyof typeof CUTS;
export type Heat = keyof typeof HEATS;

/** The house of the made-up games: the same rooms and furniture in each, and what may lie about. */

/** A way between two rooms, with the door in it if there is one. */
interface Way {
  readonly from: string;
  readonly direction: Direction;
  readonly to: string;
  readonly door?: string;
}

export const OPPOSITE = { north: "south", south: "north", east: "west", west: "east" } as const;
type Direction = keyof typeof OPPOSITE;
export const DIRECTIONS = Object.keys(OPPOSITE) as readonly Direction[];

/** The ways of the house. */
export const WAYS: readonly Way[] = [
  { from: "bedroom", direction: "east", to: "corridor", door: "oak door" },
  { from: "corridor", direction: "north", to: "bathroom" },
  { from: "corridor", direction: "south", to: "study", door: "iron door" },
  { from: "corridor", direction: "east", to: "parlour" },
  { from: "parlour", direction: "south", to: "kitchen" },
  { from: "parlour", direction: "east", to: "garden", door: "glass door" },
  { from: "kitchen", direction: "east", to: "pantry", door: "screen door" },
];

/** Furniture by type and room. */
export const FURNITURE: readonly (readonly [
  name: string,
  type: "b" | "c" | "s" | "v" | "w",
  room: string,
])[] = [
  ["bed", "s", "bedroom"],
  ["chest", "c", "bedroom"],
  ["basin", "s", "bathroom"],
  ["hamper", "c", "bathroom"],
  ["desk", "s", "study"],
  ["safe", "c", "study"],
  ["sofa", "s", "parlour"],
  ["cabinet", "c", "parlour"],
  ["stove", "v", "kitchen"],
  ["oven", "w", "kitchen"],
  ["table", "s", "kitchen"],
  ["fridge", "c", "kitchen"],
  ["cookbook", "b", "kitchen"],
  ["shelf", "s", "pantry"],
  ["crate", "c", "pantry"],
  ["barrel", "c", "garden"],
];

export const ROOMS: readonly string[] = [...new Set(WAYS.flatMap(({ from, to }) => [from, to]))];
/** Further names for the rooms of mazes. */
export const MORE_ROOMS: readonly string[] = ["attic", "cellar", "gallery", "library", "workshop"];
export const FOODS: readonly string[] = "apple carrot egg fish mushroom onion pepper potato".split(
  " ",
);
export const THINGS: readonly string[] = "bell candle clock coin flute lamp mirror ring".split(" ");
export const KEYS: readonly string[] = ["brass key", "copper key", "silver key"];

/** Something to be done, for one point. */
export interface Quest {
  /** All of these must hold at once, once. */
  readonly wanted: readonly Fact[];
}

/** A made-up game. */
export interface MadeGame extends PlayedGame {
  readonly family: string;
  readonly entities: ReadonlyMap<string, Entity>;
  readonly quests: readonly Quest[];
  /** Facts that lose the game. */
  readonly fatal: readonly Fact[];
  /** What the cookbook says. */
  readonly recipe: string;
}

/** A game being made; entities are called by their names. */
export interface Draft {
  add(type: string, name: string): void;
  know(predicate: string, ...ids: readonly string[]): void;
  /** A way in both directions; a door is `closed`, `open` or `locked`. */
  connect(from: string, direction: Direction, to: string, door?: string, state?: string): void;
  finish(rest: Omit<MadeGame, keyof PlayedGame | "entities"> & { objective: string }): MadeGame;
}

/** An empty draft. */
export function createDraft(): Draft {
  const entities = new Map<string, Entity>();
  const facts: Fact[] = [];
  const draft: Draft = {
    add: (type, name) => void entities.set(name, { type, name }),
    know: (predicate, ...ids) => void facts.push(fact(predicate, ids)),
    connect(from, direction, to, door, state = "open") {
      draft.know("exit", from, direction, to);
      draft.know("exit", to, OPPOSITE[direction], from);
      if (door !== undefined) {
        draft.add("d", door);
        draft.know("door", from, door, to);
        draft.know("door", to, door, from);
        draft.know(state, door);
      }
      if (door !== undefined && state !== "open") return;
      draft.know("free", from, to);
      draft.know("free", to, from);
    },
    finish(rest) {
      let tracker: Tracker | undefined;
      return {
        ...rest,
        entities,
        world: collectFacts(facts),
        maxScore: rest.quests.length,
        get tracker() {
          tracker ??= createTracker(rules, entities);
          return tracker;
        },
      };
    },
  };
  for (const direction of Object.keys(OPPOSITE)) draft.add("x", direction);
  return draft;
}

/** Whether a fact holds. */
export function holds(facts: Facts, predicate: string, ...ids: readonly string[]): boolean {
  const { key } = fact(predicate, ids);
  return facts.get(predicate)?.some((one) => one.key === key) ?? false;
}

/** The facts of a predicate with this id at a place among the arguments. */
export function factsWith(
  facts: Facts,
  predicate: string,
  place: number,
  id: string,
): readonly Fact[] {
  return facts.get(predicate)?.filter((one) => one.arguments[place] === id) ?? [];
}

/** Where somebody or something is, directly: in a room, in something or on something. */
export function placeOf(
  facts: Facts,
  id: string,
): { readonly how: "at" | "in" | "on"; readonly place: string } | undefined {
  for (const how of ["at", "in", "on"] as const) {
    const place = factsWith(facts, how, 0, id)[0]?.arguments[1];
    if (place !== undefined) return { how, place };
  }
  return undefined;
}

/** The room the player is in. */
export function roomOf(facts: Facts): string {
  return placeOf(facts, "P")!.place;
}

/** The room the player is in: its name, furniture, things and exits. */
export function roomText(game: MadeGame, facts: Facts): string {
  const room = roomOf(facts);
  const here = factsWith(facts, "at", 1, room).map((one) => one.arguments[0]!);
  const type = (id: string): string => game.entities.get(id)?.type ?? "";
  const furniture = here.filter((id) => "bcsvw".includes(type(id)) && type(id) !== "");
  const lying = here.filter((id) => "ofkn".includes(type(id)) && type(id) !== "");
  return [
    `-= ${room[0]!.toUpperCase()}${room.slice(1)} =-`,
    [
      `You are in the ${room}.`,
      ...furniture.map((id) => furnitureText(facts, id, type(id))),
      ...(lying.length > 0 ? [`On the floor: ${listed(facts, lying)}.`] : []),
      exitsText(facts, room),
    ].join(" "),
  ].join("\n");
}

function furnitureText(facts: Facts, id: string, type: string): string {
  if (type === "b") return `There is ${withArticle(id)}.`;
  if (type === "s" || type === "v") {
    const on = factsWith(facts, "on", 1, id).map((one) => one.arguments[0]!);
    return `There is ${withArticle(id)}${on.length > 0 ? ` with ${listed(facts, on)} on it` : ""}.`;
  }
  return holds(facts, "open", id)
    ? `There is an open ${id}. ${contentsText(facts, id)}`
    : `There is a ${holds(facts, "locked", id) ? "locked" : "closed"} ${id}.`;
}

/** What an open container holds. */
export function contentsText(facts: Facts, container: string): string {
  const inside = factsWith(facts, "in", 1, container).map((one) => one.arguments[0]!);
  return inside.length === 0 ? "It is empty." : `In it: ${listed(facts, inside)}.`;
}

/** What the player carries. */
export function inventoryText(facts: Facts): string {
  const carried = factsWith(facts, "in", 1, "I").map((one) => one.arguments[0]!);
  return carried.length === 0 ? "You carry nothing." : `You carry ${listed(facts, carried)}.`;
}

function exitsText(facts: Facts, room: string): string {
  const exits = factsWith(facts, "exit", 0, room).map(({ arguments: [, direction, to] }) => {
    const door = factsWith(facts, "door", 0, room).find((one) => one.arguments[2] === to)
      ?.arguments[1];
    if (door === undefined) return direction!;
    const state = ["open", "closed", "locked"].find((one) => holds(facts, one, door))!;
    return `${direction} (${state} ${door})`;
  });
  return `Exits: ${exits.join(", ")}.`;
}

/** Things with what was done to them: "an egg, a carrot (chopped, fried) and a key". */
function listed(facts: Facts, ids: readonly string[]): string {
  const named = ids.map((id) => {
    const done = [...Object.keys(CUTS), ...Object.keys(HEATS)].filter((one) =>
      holds(facts, one, id),
    );
    return done.length === 0 ? withArticle(id) : `${withArticle(id)} (${done.join(", ")})`;
  });
  return andList(named);
}

/** "a", "a and b", "a, b and c". */
export function andList(words: readonly string[]): string {
  const last = words.at(-1) ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} and ${last}`;
}

/** A name with its indefinite article. */
function withArticle(name: string): string {
  return `${/^[aeiou]/.test(name) ? "an" : "a"} ${name}`;
}
