/**
 * What a world model may know about the initial state: whether each place is closed and what it
 * holds. The only file that knows words of the domain: a game whose domain lacks them has no such
 * context.
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
 * The places of a game at the start, in the words and in the order in which visiting and opening
 * them shows them, so that a model only needs to remember, not to rephrase.
 */
export function initialContext(game: Game): string | undefined {
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
