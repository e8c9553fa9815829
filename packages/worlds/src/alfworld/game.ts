/** A game file, parsed and ready to play. Games share memory for what they have in common. */

import { EnvError } from "@pawl/core/envs/env.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { jsonFault, type Source } from "./games.js";
import { type Grammar, type Phrase, parseGrammar } from "./grammar.js";
import { createMemo } from "./memo.js";
import { type Domain, parseDomain, parseProblem } from "./pddl.js";
import {
  applicableActions,
  argumentsKey,
  changeState,
  changesOf,
  goalReached,
  initialState,
  type State,
} from "./state.js";
import {
  type Bindings,
  changeView,
  dependenceOf,
  type FactView,
  initialView,
  type Teller,
  tell,
} from "./text.js";
import { type Action, buildWorld, type Schema, type World } from "./world.js";

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

/** The wording of an action in one game. */
interface SchemaText {
  readonly template: Phrase;
  readonly feedback: Phrase;
  /**
   * The commands created so far, by the arguments they depend on; undefined if they depend on the
   * state.
   */
  readonly commands: Map<number, string> | undefined;
  /** The positions of the arguments that the command depends on. */
  readonly commandArguments: readonly number[];
}

export interface Game extends Teller {
  /** The commands that solve it, if the file has them. */
  readonly walkthrough: readonly string[] | undefined;
  /** What the game says at the start: banner, surroundings and task. */
  readonly opening: string;
  /** The surroundings alone: the opening without its banner and its task. */
  readonly surroundings: string;
  /** The game's task sentence, if it has one. */
  readonly task: string | undefined;
  textOf(schema: Schema): SchemaText;
}

/** Games of one version have the same domain; games with the same task have the same grammar. */
const domains = createMemo<Domain>(16);
const grammars = createMemo<Grammar>(64);

/** The grammar symbols that the engine itself uses. */
const OPENING = "intro";
const TASK = "task";

/** Loads a game; anything wrong with it is an `EnvError` that names file, line and construct. */
export function loadGame(file: string): Game {
  let text: string;
  try {
    text = readRegularText(file);
  } catch (error) {
    throw new EnvError(`${file}: the game cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
  return parseGame(file, text);
}

/** Parses the text of a game file. */
export function parseGame(file: string, text: string): Game {
  const fields = readFields(file, text);
  const part = (name: string): Source => {
    const value = fields[name];
    if (typeof value !== "string") {
      const found = value === undefined ? "nothing" : typeof value;
      throw new EnvError(`${file}: expected a text \`${name}\` in the game, found ${found}`);
    }
    return { file, part: name, text: value };
  };
  if (fields.solvable === false) {
    const hint = "the task lists leave such games out";
    throw new EnvError(`${file}: the game says of itself that it cannot be solved; ${hint}`);
  }
  const domainSource = part("pddl_domain");
  const domain = domains(domainSource.text, () => parseDomain(domainSource));
  const grammarSource = part("grammar");
  const grammar = grammars(grammarSource.text, () => parseGrammar(grammarSource));
  const problem = part("pddl_problem");
  const world = buildWorld(domain, parseProblem(problem, domain), problem);
  const names = objectNames(world);
  const walkthrough = readWalkthrough(file, fields.walkthrough);
  const texts = new Map<Schema, SchemaText>();
  const textOf = (schema: Schema): SchemaText => {
    let found = texts.get(schema);
    if (found === undefined) {
      const action = grammar.actions.get(schema.name);
      if (action === undefined)
        throw new EnvError(`${file}: grammar: there is no \`action ${schema.name} { … }\``);
      found = { ...action, ...commandCache(world, grammar, schema, action.template) };
      texts.set(schema, found);
    }
    return found;
  };
  const teller: Teller = { file, grammar, world, names };
  const view = initialView(world);
  const say = (phrase: Phrase) => tell(teller, view, phrase, { names: [], objects: [] });
  const task = grammar.rules.has(TASK) ? say([{ op: "symbol", name: TASK }]) : undefined;
  return {
    ...teller,
    walkthrough,
    opening: say([{ op: "symbol", name: OPENING }]),
    surroundings: say(surroundings(grammar)).trim(),
    task,
    textOf,
  };
}

/** The cache for the commands of a schema, if they are the same in every state. */
function commandCache(
  world: World,
  grammar: Grammar,
  schema: Schema,
  template: Phrase,
): Pick<SchemaText, "commands" | "commandArguments"> {
  const { state, names } = dependenceOf(world, grammar, template);
  // A placeholder that a query binds must differ from all arguments, so then all of them count.
  const free = [...names].some((name) => !schema.parameters.includes(name));
  const read = schema.positions.filter((at) => free || names.has(schema.parameters[at]!));
  return { commands: state ? undefined : new Map(), commandArguments: read };
}

/** The opening phrase without the text before its first symbol and without the task. */
function surroundings(grammar: Grammar): Phrase {
  const phrase = grammar.rules.get(OPENING)?.[0]?.phrase ?? [];
  const first = phrase.findIndex(({ op }) => op !== "literal");
  return phrase
    .slice(Math.max(first, 0))
    .filter((piece) => piece.op !== "symbol" || piece.name !== TASK);
}

function readFields(file: string, text: string): Readonly<Record<string, unknown>> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw jsonFault({ file, part: "game file", text }, text, 0, error);
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new EnvError(`${file}: expected a JSON object with a game, found something else`);
  return { ...parsed };
}

function readWalkthrough(file: string, value: unknown): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value) || !value.every((each) => typeof each === "string"))
    throw new EnvError(`${file}: expected \`walkthrough\` to be a list of commands`);
  return value;
}

/** Names for the objects that facts mention; the others are never mentioned. */
function objectNames(world: World): readonly string[] {
  const { count, names } = world.objects;
  const mentioned = new Uint8Array(count);
  world.domain.predicates.forEach(({ arity }, predicate) => {
    for (let key of world.initial[predicate]!) {
      for (let at = 0; at < arity; at++) {
        mentioned[key % count] = 1;
        key = Math.floor(key / count);
      }
    }
  });
  const named = nameObjects(names.filter((_, object) => mentioned[object] === 1));
  return names.map((id) => named.get(id) ?? id);
}

/** Ends the readable part of an id; what follows are coordinates. */
const SEPARATOR = "_bar_";
/** The one word that the original adds to a name: an id that contains it is called so. */
const SUFFIX = "basin";

/**
 * The names of `ids`, which are sorted: the readable part of the id and a number that counts
 * downwards, so that the first of a kind has the highest. An id without coordinates is its own
 * name, followed by a space.
 */
export function nameObjects(ids: readonly string[]): ReadonlyMap<string, string> {
  const kindOf = (id: string) => {
    const kind = id.slice(0, id.indexOf(SEPARATOR));
    return id.includes(SUFFIX) ? kind + SUFFIX : kind;
  };
  const left = new Map<string, number>();
  const numbered = ids.filter((id) => id.includes(SEPARATOR));
  for (const id of numbered) left.set(kindOf(id), (left.get(kindOf(id)) ?? 0) + 1);
  const names = new Map(ids.map((id) => [id, `${id} `]));
  for (const id of numbered) {
    const kind = kindOf(id);
    const number = left.get(kind)!;
    left.set(kind, number - 1);
    names.set(id, `${kind} ${number}`);
  }
  return names;
}
