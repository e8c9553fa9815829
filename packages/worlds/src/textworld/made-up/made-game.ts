/** A made-up game: what there is, what is to be done, and what loses. */
import { collectFacts, type Fact, type Facts, fact } from "../facts.js";
import type { PlayedGame } from "../moment.js";
import { createTracker, type Entity, type Tracker } from "../tracker.js";
import { type Direction, OPPOSITE } from "./house.js";
import { rules } from "./rules.js";

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
