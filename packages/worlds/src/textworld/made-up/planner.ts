/**
 * The expert of the made-up games: it sees everything, and finds its way from any moment. Keys are
 * never behind the doors they open, so what a plan needs first can always be had.
 */
import type { Fact, Facts } from "../facts.js";
import { factsWith, holds, placeOf, type Quest, roomOf } from "./made-game.js";
import { CUTS, type Cut, HEATS, type Heat } from "./rules.js";

/** The next command towards the first quest that is not done; `look` where nothing helps any more. */
export function nextCommand(facts: Facts, open: readonly Quest[]): string {
  for (const { wanted } of open)
    for (const one of wanted)
      if (!holds(facts, one.predicate, ...one.arguments)) return towards(facts, one) ?? "look";
  return "look";
}

/** The next command towards a fact; undefined if it cannot become true any more. */
function towards(facts: Facts, { predicate, arguments: [id, holder] }: Fact): string | undefined {
  if (predicate === "read") return goTo(facts, roomWith(facts, id!)) ?? `read ${id}`;
  if (predicate === "in" && holder === "I") return obtain(facts, id!);
  if (!carried(facts, id!)) return obtain(facts, id!);
  if (predicate in CUTS) {
    const command = `${CUTS[predicate as Cut]} ${id} with knife`;
    return carried(facts, "knife") ? command : obtain(facts, "knife");
  }
  if (predicate in HEATS) {
    const device = HEATS[predicate as Heat];
    return goTo(facts, roomWith(facts, device)) ?? `cook ${id} with ${device}`;
  }
  return goTo(facts, roomWith(facts, holder!)) ?? `put ${id} on ${holder}`;
}

function carried(facts: Facts, id: string): boolean {
  return holds(facts, "in", id, "I");
}

/** The next command towards carrying something. */
function obtain(facts: Facts, id: string): string | undefined {
  const found = placeOf(facts, id);
  if (found === undefined) return undefined;
  const { how, place } = found;
  if (how === "at") return goTo(facts, place) ?? `take ${id}`;
  if (how === "in" && holds(facts, "locked", place)) {
    const key = keyOf(facts, place);
    if (!carried(facts, key)) return obtain(facts, key);
    return goTo(facts, roomWith(facts, place)) ?? `unlock ${place} with ${key}`;
  }
  const way = goTo(facts, roomWith(facts, place));
  if (way !== undefined) return way;
  if (how === "in" && holds(facts, "closed", place)) return `open ${place}`;
  return `take ${id} from ${place}`;
}

function keyOf(facts: Facts, lock: string): string {
  return factsWith(facts, "fits", 1, lock)[0]!.arguments[0]!;
}

function roomWith(facts: Facts, furniture: string): string {
  return placeOf(facts, furniture)!.place;
}

/** The next command on the shortest way to a room, doors included; undefined if it is reached. */
function goTo(facts: Facts, room: string): string | undefined {
  const here = roomOf(facts);
  // Backwards from the room: the first way found out of `here` is the shortest.
  const queue = [room];
  const seen = new Set(queue);
  for (const to of queue) {
    if (to === here) return undefined;
    for (const { arguments: exit } of factsWith(facts, "exit", 2, to)) {
      const [from, direction] = exit as [string, string];
      if (from === here) return through(facts, here, direction, to);
      if (!seen.has(from)) queue.push(from);
      seen.add(from);
    }
  }
  return undefined;
}

/** Goes through a way, or makes it free first. */
function through(facts: Facts, here: string, direction: string, to: string): string | undefined {
  if (holds(facts, "free", here, to)) return `go ${direction}`;
  const door = factsWith(facts, "door", 0, here).find((one) => one.arguments[2] === to)!
    .arguments[1]!;
  if (holds(facts, "closed", door)) return `open ${door}`;
  const key = keyOf(facts, door);
  return carried(facts, key) ? `unlock ${door} with ${key}` : obtain(facts, key);
}
