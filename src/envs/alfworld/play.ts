/** A game in progress: the raw game as the original presents it, command by command. */
import type { Game } from "./game.js";
import {
  applicableActions,
  argumentsKey,
  changeState,
  changesOf,
  goalReached,
  initialState,
  type State,
} from "./state.js";
import { tell } from "./text.js";
import { type Bindings, changeView, type FactView, initialView } from "./view.js";
import type { Action } from "./world.js";

/** The game's response to a command. */
interface Answer {
  readonly text: string;
  /** The action that was carried out; undefined if the command was invalid. */
  readonly action: Action | undefined;
}

/** One run through a game. */
export interface Play {
  readonly game: Game;
  readonly state: State;
  /** Whether the goal is reached now. */
  readonly won: boolean;
  /** The commands that would be carried out now, sorted, each once. */
  commands(): readonly string[];
  /** The command of an action in this state. */
  commandFor(action: Action): string;
  /** Carries a command out. */
  step(command: string): Answer;
  /** An independent copy. */
  clone(): Play;
}

/** The original's response to an invalid command; the only text that is not in the game files. */
export const NOTHING_HAPPENS = "Nothing happens.";

/** The state of a game at one moment; it is immutable, so copies share it. */
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

  const commandFor = (action: Action): string => {
    const { template, commands, commandArguments } = game.textOf(action.schema);
    const key = argumentsKey(action.schema, action.arguments, commandArguments);
    let command = commands?.get(key);
    if (command === undefined) {
      command = tell(game, moment.view, template, bindingsOf(action));
      commands?.set(key, command);
    }
    return command;
  };

  const offers = (): Offers => {
    if (moment.offers.made === undefined) {
      const actions = new Map<string, Action>();
      for (const group of applicableActions(world, moment.state)) {
        for (const action of group) {
          const command = commandFor(action);
          if (!actions.has(command)) actions.set(command, action);
        }
      }
      moment.offers.made = { actions, commands: [...actions.keys()].sort() };
    }
    return moment.offers.made;
  };

  const step = (command: string): Answer => {
    const action = offers().actions.get(command.trim());
    if (action === undefined) return { text: NOTHING_HAPPENS, action };
    const changes = changesOf(world, moment.state, action);
    const state = changeState(world, moment.state, changes);
    const won = goalReached(world, state);
    moment = { state, view: changeView(moment.view, changes), won, offers: {} };
    const { feedback } = game.textOf(action.schema);
    return { text: tell(game, moment.view, feedback, bindingsOf(action)), action };
  };

  return {
    game,
    get state() {
      return moment.state;
    },
    get won() {
      return moment.won;
    },
    commands: () => offers().commands,
    commandFor,
    step,
    clone: () => playFrom(game, moment),
  };
}

function bindingsOf(action: Action): Bindings {
  return { names: [...action.schema.parameters], objects: [...action.arguments] };
}
