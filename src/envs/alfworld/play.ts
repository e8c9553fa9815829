/** A game being played: the raw game as the original presents it, command by command. */
import type { Game } from "./game.js";
import {
  applicableActions,
  changeState,
  changesOf,
  goalReached,
  initialState,
  type State,
} from "./state.js";
import { type Narration, tell } from "./text.js";
import { type Bindings, changeView, type FactView, initialView } from "./view.js";
import type { Action } from "./world.js";

/** The game's answer to a command. */
export interface Answer {
  readonly text: string;
  /** The action that was carried out; undefined where the command meant nothing now. */
  readonly action: Action | undefined;
}

/** One run through a game. */
export interface Play {
  readonly game: Game;
  readonly state: State;
  /** Whether the goal is reached now. */
  readonly won: boolean;
  /** What the game says at the start; the same at any time. */
  readonly opening: string;
  /** The commands that would be carried out now, sorted, each once. */
  commands(): readonly string[];
  /** The command of an action in this state. */
  commandFor(action: Action): string;
  /** Carries a command out. */
  step(command: string): Answer;
  /** A copy that goes its own way from here. */
  clone(): Play;
}

/** What the original answers to anything that is no command now; the one text that no game has. */
export const NOTHING_HAPPENS = "Nothing happens.";

/** What a play is at one moment; nothing in it changes, so copies share it. */
interface Moment {
  readonly state: State;
  readonly view: FactView;
  readonly won: boolean;
  readonly offers: { made?: Offers };
}

interface Offers {
  readonly commands: readonly string[];
  readonly actions: ReadonlyMap<string, Action>;
}

/** Starts a game. */
export function startPlay(game: Game): Play {
  const state = initialState(game.world);
  const won = goalReached(game.world, state);
  return playFrom(game, { state, view: initialView(game.world), won, offers: {} });
}

function playFrom(game: Game, start: Moment): Play {
  const { world } = game;
  let moment = start;

  const narration = (): Narration => ({ ...game, view: moment.view });

  const commandFor = (action: Action): string => {
    if (action.command !== undefined) {
      return action.command;
    }
    const text = game.textOf(action.schema);
    const command = tell(narration(), text.template, bindingsOf(action));
    if (text.constantTemplate) {
      action.command = command;
    }
    return command;
  };

  const offers = (): Offers => {
    if (moment.offers.made === undefined) {
      const actions = new Map<string, Action>();
      for (const group of applicableActions(world, moment.state)) {
        for (const action of group) {
          const command = commandFor(action);
          if (!actions.has(command)) {
            actions.set(command, action);
          }
        }
      }
      moment.offers.made = { actions, commands: [...actions.keys()].sort() };
    }
    return moment.offers.made;
  };

  const step = (command: string): Answer => {
    const action = offers().actions.get(command.trim());
    if (action === undefined) {
      return { text: NOTHING_HAPPENS, action };
    }
    const changes = changesOf(world, moment.state, action);
    const state = changeState(world, moment.state, changes);
    const won = goalReached(world, state);
    moment = { state, view: changeView(moment.view, changes), won, offers: {} };
    const { feedback } = game.textOf(action.schema);
    return { text: tell(narration(), feedback, bindingsOf(action)), action };
  };

  return {
    game,
    get state() {
      return moment.state;
    },
    get won() {
      return moment.won;
    },
    get opening() {
      return game.opening;
    },
    commands: () => offers().commands,
    commandFor,
    step,
    clone: () => playFrom(game, moment),
  };
}

function bindingsOf(action: Action): Bindings {
  return new Map(action.schema.parameters.map((name, at) => [name, action.arguments[at]!]));
}
