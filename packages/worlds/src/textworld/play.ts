/**
 * Plays a game as the original's wrappers do: some infos are switched on at the start, every turn's
 * text is taken apart, and the tracker follows the events. States are immutable, so a copy of a game
 * is the state itself.
 */
import { EnvError } from "@pawl/core/envs/env.js";
import type { Game } from "./game.js";
import {
  INFOS,
  inStyle,
  type Moment,
  type ObservationStyle,
  type Play,
  takeApart,
} from "./turn-text.js";
import { feedLine, startStory } from "./zmachine/interpreter.js";
import { type Machine, noteWaits, type Snapshot, takeSnapshot } from "./zmachine/machine.js";

/** A moment of a story. */
export interface StoryMoment extends Moment {
  readonly snapshot: Snapshot;
  /** How many events the tracker has followed. */
  readonly moves: number;
  /** How many commands of the walkthrough were given so far: the expert goes on from there. */
  readonly followed: number;
  readonly description: string | undefined;
  readonly inventory: string | undefined;
}

/** A story in one observation style. */
export interface StoryPlay extends Play {
  readonly game: Game;
  readonly start: StoryMoment;
  step(moment: StoryMoment, command: string): StoryMoment;
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
export function startPlay(game: Game, { style, tracked }: PlayOptions): StoryPlay {
  const { machine, player } = game;
  startStory(machine);
  const observation = inStyle(machine.transcript, style);
  let described: Pick<StoryMoment, "description" | "inventory" | "score"> = {
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
  const start: StoryMoment = {
    ...described,
    snapshot,
    facts: game.world,
    observation,
    won: false,
    lost: false,
    acted: true,
    moves: 0,
    followed: 0,
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
        followed: moment.followed + Number(command.trim() === game.walkthrough[moment.followed]),
      };
    },
    advice: ({ followed }: StoryMoment) => nextOfWalkthrough(game.walkthrough, followed),
  };
}

/** The next command of the walkthrough; it wins if the player has not strayed from it. */
function nextOfWalkthrough(walkthrough: readonly string[], followed: number): string {
  if (walkthrough.length === 0)
    throw new EnvError("textworld: this game was made without a walkthrough: it has no expert");
  return walkthrough[followed] ?? walkthrough.at(-1)!;
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

function infosOf(infos: ReadonlyMap<string, string>): Partial<StoryMoment> {
  const score = infos.get("score");
  const description = infos.get("description");
  const inventory = infos.get("inventory");
  return {
    ...(score !== undefined && { score: Number.parseInt(score.split("\n")[0]!, 10) || 0 }),
    ...(description !== undefined && { description }),
    ...(inventory !== undefined && { inventory }),
  };
}
