/** A game as an environment: one episode at a time. */
import { begun, type Env, EnvError, type StepResult, type Task } from "../env.js";
import type { Moment, Play } from "./moment.js";

/** A game to play, and how. */
export interface Adventure {
  readonly task: Task;
  readonly play: Play;
  readonly opening: "room" | "whole";
  readonly reward: "score" | "success";
  readonly context: "none" | "facts";
}

/** A running game, with what its expert would type next. */
export interface AdventureEnv extends Env {
  advice(): string;
}

interface Episode {
  readonly adventure: Adventure;
  readonly moment: Moment;
  /** The admissible commands, once they have been asked for. */
  listed?: readonly string[];
}

/** Commands that ask about files or end the program, which is not the player's to end. */
const REFUSED =
  /^(?:restart|quit|q|save|restore|script|transcript|unscript|verify|tw-\S*)(?:\s|$)/i;
const REFUSAL = "That command is not available here: play on, or use another one.";
const IRREVERSIBLE = /^(?:eat|drink|cook|chop|slice|dice|prepare)\b/i;

/** An environment that plays the adventures it is given tasks of. */
export function createAdventureEnv(
  adventureOf: (id: string) => Adventure,
  from?: Episode,
): AdventureEnv {
  let episode = from;
  const current = (asked: string): Episode => begun(episode, "textworld", asked);
  const commands = (now: Episode): readonly string[] => {
    now.listed ??= now.adventure.play.game.tracker.commands(now.moment.facts);
    return now.listed;
  };
  return {
    get goal() {
      const { objective } = current("goal").adventure.play.game;
      return objective.trim() || "Find out what is to be done here, and do it.";
    },
    get taskType() {
      return current("taskType").adventure.task.type;
    },
    advice() {
      const { adventure, moment } = current("the expert");
      return adventure.play.advice(moment);
    },
    reset(task) {
      const adventure = adventureOf(task.id);
      const { start } = adventure.play;
      episode = { adventure, moment: start };
      return adventure.opening === "whole" ? start.observation : firstRoom(start.observation);
    },
    step(action): StepResult {
      const now = current("step");
      const { adventure, moment } = now;
      if (moment.won || moment.lost)
        throw new EnvError(
          "textworld: step was called after the episode was over; call reset(task).",
        );
      const command = action.trim();
      const { maxScore } = adventure.play.game;
      const share = (score: number): number =>
        maxScore > 0 && Number.isFinite(maxScore) ? Math.min(1, Math.max(0, score / maxScore)) : 0;
      if (REFUSED.test(command)) {
        const info = { valid: false, success: false, score: share(moment.score) };
        return { observation: REFUSAL, reward: 0, done: false, info };
      }
      const next = adventure.play.step(moment, command);
      const valid = next.acted || commands(now).includes(command);
      const { observation, won, lost, score } = next;
      episode = { adventure, moment: next };
      const reward = adventure.reward === "score" ? score - moment.score : won ? 1 : 0;
      const info = {
        valid,
        success: won,
        score: adventure.reward === "score" && !won ? share(score) : Number(won),
      };
      return { observation, reward, done: won || lost, info };
    },
    admissibleActions() {
      const now = current("admissibleActions");
      return now.moment.won || now.moment.lost ? [] : commands(now);
    },
    irreversible: (action) => IRREVERSIBLE.test(action.trim()),
    maxReturn() {
      const { reward, play } = current("maxReturn").adventure;
      const { maxScore } = play.game;
      return reward === "score" && maxScore > 0 && Number.isFinite(maxScore) ? maxScore : undefined;
    },
    initialContext() {
      const { adventure } = current("initialContext");
      const { tracker, world } = adventure.play.game;
      return adventure.context === "facts" ? `${tracker.readable(world).join(". ")}.` : undefined;
    },
    clone: () => createAdventureEnv(adventureOf, episode),
  };
}

/** The first observation without banner and objective: it begins with the name of the first room. */
function firstRoom(opening: string): string {
  const room = opening.search(/^-= /m);
  return room < 0 ? opening : opening.slice(room);
}
