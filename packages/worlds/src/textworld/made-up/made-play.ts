/** Plays a made-up game: the rules say what a command does, and the quests what it is worth. */

import type { Fact, Facts } from "../logic.js";
import type { Moment, ObservationStyle, Play } from "../turn-text.js";
import {
  CUTS,
  type Cut,
  contentsText,
  factsWith,
  HEATS,
  type Heat,
  holds,
  inventoryText,
  type MadeGame,
  placeOf,
  type Quest,
  roomOf,
  roomText,
} from "./made-game.js";

/** A moment of a made-up game. */
interface MadeMoment extends Moment {
  /** The numbers of the quests that are done. */
  readonly done: ReadonlySet<number>;
  readonly turns: number;
}

/** As wide as the status line of TextWorld's games. */
const STATUS = " ".repeat(128);

/** Starts a made-up game. */
export function startMadePlay(game: MadeGame, style: ObservationStyle): Play {
  const { world, quests, objective } = game;
  const styled = (text: string, { facts, done, turns }: Omit<MadeMoment, "observation">): string =>
    style === "tw"
      ? text
      : `\n${text}\n\n>${STATUS}${roomText(game, facts).split("\n")[0]}${done.size}/${turns}`;
  const begin = {
    facts: world,
    score: 0,
    won: false,
    lost: false,
    acted: true,
    done: new Set<number>(),
    turns: 0,
  };
  const banner = `A made-up game in the manner of TextWorld.\n\n${objective}`;
  const start = { ...begin, observation: styled(`${banner}\n\n${roomText(game, world)}`, begin) };
  return {
    game,
    start,
    advice: ({ facts, done }: MadeMoment) =>
      nextCommand(
        facts,
        quests.filter((_, index) => !done.has(index)),
      ),
    step(moment: MadeMoment, given: string): MadeMoment {
      const command = given.trim().toLowerCase();
      const result = game.tracker.act(moment.facts, command);
      if (result === undefined) {
        const next = { ...moment, acted: false, turns: moment.turns + 1 };
        return { ...next, observation: styled("That cannot be done here and now.", next) };
      }
      const { facts } = result;
      const wanted = quests.flatMap((quest, index) =>
        quest.wanted.every((one) => holds(facts, one.predicate, ...one.arguments)) ? [index] : [],
      );
      const done = new Set([...moment.done, ...wanted]);
      const lost = game.fatal.some((one) => holds(facts, one.predicate, ...one.arguments));
      const won = !lost && done.size === quests.length;
      const turns = moment.turns + 1;
      const next = { facts, score: done.size, won, lost, acted: true, done, turns };
      const gained = done.size - moment.done.size;
      const text = [
        outcome(game, moment, next, command, result.event),
        ...(gained > 0 ? [`Your score has gone up to ${done.size}.`] : []),
        ...(won ? ["*** The End ***"] : lost ? ["*** You lost! ***"] : []),
      ].join(" ");
      return { ...next, observation: styled(text, next) };
    },
  };
}

/** The event, and what there is to see because of it. */
function outcome(
  game: MadeGame,
  before: Pick<Moment, "facts">,
  { facts }: Pick<Moment, "facts">,
  command: string,
  event: string,
): string {
  const [verb, ...object] = command.split(" ");
  if (verb === "look" || roomOf(facts) !== roomOf(before.facts)) return roomText(game, facts);
  if (verb === "inventory") return inventoryText(facts);
  if (verb === "read") return `${event} ${game.recipe}`;
  const type = game.entities.get(object.join(" "))?.type;
  return verb === "open" && type !== "d"
    ? `${event} ${contentsText(facts, object.join(" "))}`
    : event;
}

// The expert of the made-up games: it sees everything, and finds its way from any moment. Keys are
// never behind the doors they open, so what a plan needs first can always be had.

/** The next command towards the first quest that is not done; `look` where nothing helps any more. */
function nextCommand(facts: Facts, open: readonly Quest[]): string {
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
