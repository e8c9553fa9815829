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

/**
 * The places of a game as they are at the start. Places and things come in the order in which the game itself
 * lists them: a model that is told what a drawer holds need not put it into another order to foresee what
 * opening it shows.
 */
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
  const places = world.objects.ofType(WORDS.place).objects.map((place) => {
    const closed = holds(WORDS.canOpen, place) && !holds(WORDS.isOpen, place);
    const things = (contents.get(place) ?? []).map((thing) => `a ${names[thing]}`);
    const held = things.length === 0 ? "nothing" : things.join(", ");
    return `The ${names[place]}${closed ? " (closed)" : ""} holds ${held}.`;
  });
  return places.length === 0 ? undefined : places.join(" ");
}
