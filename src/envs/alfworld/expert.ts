/**
 * The expert: follows a game's walkthrough as long as the episode does, and otherwise searches for
 * a plan from the current state.
 */
import { EnvError } from "../env.js";
import { findPlan } from "./planner.js";
import type { Play } from "./play.js";
import type { Action } from "./world.js";

/** Knows the way to the goal of one episode. */
export interface Guide {
  /** The next command on a way to the goal. */
  next(): string;
  /** Called for every command that was carried out. */
  saw(command: string, action: Action): void;
  /** The guide of a copy of the episode. */
  clone(play: Play): Guide;
}

/** The rest of a plan: commands of the walkthrough, or actions that a search found. */
type Way = readonly (string | Action)[];

/** A guide through an episode, which starts with the game's walkthrough if there is one. */
export function createGuide(play: Play, start: Way = play.game.walkthrough ?? []): Guide {
  let way = start;
  const command = (step: string | Action): string =>
    typeof step === "string" ? step : play.commandFor(step);
  return {
    next() {
      const first = way[0];
      if (first === undefined || !play.commands().includes(command(first))) {
        const found = findPlan(play.game.world, play.state);
        if (found === undefined) {
          const reason = "its bounded search found no way to the goal";
          throw new EnvError(`${play.game.file}: the expert knows no command: ${reason}`);
        }
        // If the goal already holds, any command ends the episode.
        way = found.length > 0 ? found : play.commands().slice(0, 1);
      }
      return command(way[0]!);
    },
    saw(taken, action) {
      const first = way[0];
      way = first === taken || first === action ? way.slice(1) : [];
    },
    clone: (copy) => createGuide(copy, way),
  };
}
