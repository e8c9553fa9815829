/**
 * Plays a game as the original's wrappers do: some infos are switched on at the start, every turn's
 * text is taken apart, and the tracker follows the events. States are immutable, so a copy of a game
 * is the state itself.
 */
import type { Facts } from "./facts.js";
import type { Game } from "./game.js";
import { INFOS, inStyle, type ObservationStyle, takeApart } from "./turn-text.js";
import { feedLine, startStory } from "./zmachine/interpreter.js";
import { type Machine, noteWaits, type Snapshot, takeSnapshot } from "./zmachine/machine.js";

/** A moment of a game, with what the turn before it showed. */
export interface Moment {
  readonly snapshot: Snapshot;
  readonly facts: Facts;
  readonly observation: string;
  readonly score: number;
  readonly won: boolean;
  readonly lost: boolean;
  /** Whether the turn did something that the story reported. */
  readonly acted: boolean;
  /** How many events the tracker has followed. */
  readonly moves: number;
  readonly description: string | undefined;
  readonly inventory: string | undefined;
}

/** A game in one observation style, ready to start and to go on from any moment. */
export interface Play {
  readonly game: Game;
  readonly start: Moment;
  step(moment: Moment, command: string): Moment;
}

/** How a game is played. */
export interface PlayOptions {
  readonly style: ObservationStyle;
  /** Whether the story tells description and inventory after every turn; that takes twice as long. */
  readonly tracked: boolean;
}

const LONGEST_COMMAND = 198;
const encoder = new TextEncoder();

/** Starts a game. */
export function startPlay(game: Game, { style, tracked }: PlayOptions): Play {
  const { machine, player } = game;
  startStory(machine);
  const observation = inStyle(machine.transcript, style);
  let described: Pick<Moment, "description" | "inventory" | "score"> = {
    description: undefined,
    inventory: undefined,
    score: 0,
  };
  for (const info of INFOS.filter(
    (one) => tracked || (one !== "inventory" && one !== "description"),
  )) {
    const turn = takeApart(feed(machine, `tw-extra-infos ${info}`, style));
    described = { ...described, ...infosOf(turn.infos) };
  }
  feed(machine, "tw-trace-actions", style);
  const snapshot = takeSnapshot(machine);
  noteWaits(machine);
  const start: Moment = {
    ...described,
    snapshot,
    facts: game.world,
    observation,
    won: false,
    lost: false,
    acted: true,
    moves: 0,
  };
  return {
    game,
    start,
    step(moment, command) {
      player.turn(moment.snapshot, codesOf(command.trim()));
      const turn = takeApart(inStyle(machine.transcript, style));
      let { facts, moves } = moment;
      for (const event of turn.events) {
        const changed = game.tracker.apply(facts, event);
        if (changed === undefined) continue;
        facts = changed;
        moves++;
      }
      const won = turn.observation.includes("*** The End ***");
      const lost = turn.observation.includes("*** You lost! ***");
      const snapshot = takeSnapshot(machine);
      // The question at the end of a game comes in every episode.
      if (won || lost) noteWaits(machine);
      return {
        description: moment.description,
        inventory: moment.inventory,
        score: moment.score,
        ...infosOf(turn.infos),
        snapshot,
        facts,
        observation: turn.observation,
        won,
        lost,
        acted: turn.events.length > 0,
        moves,
      };
    },
  };
}

/** One turn: the line goes in, and the transcript comes out in style. */
function feed(machine: Machine, command: string, style: ObservationStyle): string {
  machine.transcript = "";
  feedLine(machine, codesOf(command));
  return inStyle(machine.transcript, style);
}

function codesOf(command: string): readonly number[] {
  return [...encoder.encode(command).subarray(0, LONGEST_COMMAND)];
}

function infosOf(infos: ReadonlyMap<string, string>): Partial<Moment> {
  const score = infos.get("score");
  const description = infos.get("description");
  const inventory = infos.get("inventory");
  return {
    ...(score !== undefined && { score: Number.parseInt(score.split("\n")[0]!, 10) || 0 }),
    ...(description !== undefined && { description }),
    ...(inventory !== undefined && { inventory }),
  };
}
