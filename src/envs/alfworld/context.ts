/**
 * What a world model may be told of the initial state: of every place, whether it is closed and
 * what it holds. The one file that knows words of the domain: a game whose domain lacks them has no
 * such context.
 */
import type { Game } from "./game.js";
import { factHolds } from "./state.js";

const WORDS = {
  /** The type of places that hold things. */
  place: "receptacle",
  /** `(contains thing place)`. */
  contains: "inreceptacle",
  /** `(canOpen place)`, and `(isOpen place)` where it is open. */
  canOpen: "openable",
  isOpen: "opened",
};

/** Puts `drawer 2` before `drawer 10`. */
const byNumber = new Intl.Collator("en", { numeric: true });

/** The places of a game as they are at the start, in the order of their names. */
export function initialContext(game: Game): string | undefined {
  const { world, names } = game;
  const contains = world.domain.predicateIndex.get(WORDS.contains);
  if (contains === undefined || world.domain.predicates[contains]!.arity !== 2) {
    return undefined;
  }
  const contents = new Map<number, number[]>();
  for (const key of world.initial[contains]!) {
    const place = key % world.objects.count;
    const things = contents.get(place) ?? [];
    things.push(Math.floor(key / world.objects.count));
    contents.set(place, things);
  }
  const holds = (predicate: string, place: number) =>
    factHolds(world, world.initial, predicate, [place]);
  const inOrder = (objects: readonly number[]) =>
    objects.map((object) => names[object]!).sort(byNumber.compare);
  const lines = new Map(
    world.objects.ofType(WORDS.place).objects.map((place) => {
      const closed = holds(WORDS.canOpen, place) && !holds(WORDS.isOpen, place);
      const things = inOrder(contents.get(place) ?? []).map((name) => `a ${name}`);
      const held = things.length === 0 ? "nothing" : things.join(", ");
      return [names[place]!, `The ${names[place]}${closed ? " (closed)" : ""} holds ${held}.`];
    }),
  );
  const places = inOrder(world.objects.ofType(WORDS.place).objects);
  return places.length === 0 ? undefined : places.map((name) => lines.get(name)).join(" ");
}
