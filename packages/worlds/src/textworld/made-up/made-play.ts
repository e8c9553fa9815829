/** Plays a made-up game: the rules say what a command does, and the quests what it is worth. */
import type { Moment, Play } from "../moment.js";
import type { ObservationStyle } from "../turn-text.js";
import { holds, type MadeGame, roomOf } from "./made-game.js";
import { nextCommand } from "./planner.js";
import { contentsText, inventoryText, roomText } from "./texts.js";

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
