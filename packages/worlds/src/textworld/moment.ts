/** What an episode needs of a game, whether a story file tells it or it is made up. */
import type { Facts } from "./logic.js";
import type { Tracker } from "./tracker.js";

/** A moment of a game, with what the turn before it showed. Immutable: a copy is the moment itself. */
export interface Moment {
  readonly facts: Facts;
  readonly observation: string;
  readonly score: number;
  readonly won: boolean;
  readonly lost: boolean;
  /** Whether the turn did something. */
  readonly acted: boolean;
}

/** A game as those who play it know it. */
export interface PlayedGame {
  readonly tracker: Tracker;
  /** The facts at the start. */
  readonly world: Facts;
  /** What the player is told to do; may be empty. */
  readonly objective: string;
  /** The largest score; infinite if a quest can be repeated. */
  readonly maxScore: number;
}

/** A game that can be started, and gone on with from any of its moments. */
export interface Play {
  readonly game: PlayedGame;
  readonly start: Moment;
  // Methods, so that each kind of game may ask for its own moments.
  step(moment: Moment, command: string): Moment;
  /** What its expert would type. */
  advice(moment: Moment): string;
}
