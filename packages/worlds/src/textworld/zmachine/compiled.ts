/**
 * Compiled routines. Routines that are called often become JavaScript functions, which call one
 * another. The few that are running while the story waits for a line are interpreted, so that
 * nothing of the wait is on JavaScript's own stack.
 *
 * Compiled code handles what correct stories do. Anything else (a question in the middle of a turn,
 * a fault) throws, and the turn is played again by the interpreter, whose answer counts.
 */

import {
  endsPath,
  enter,
  type Flow,
  flowFrom,
  jumpsTo,
  nestLoops,
  type Range,
  rangeOf,
  routeTo,
  variablesOf,
} from "./flow.js";
import { type Compiled, decodeInstruction, type Instruction, type Routine } from "./instruction.js";
import { feedLine, runRoutine } from "./interpreter.js";
import { forgetCode, type Machine, restoreSnapshot, routineAt, type Snapshot } from "./machine.js";
import { helpersOf } from "./operations.js";
import { type Context, MOST_PARAMETERS, translate } from "./translate.js";

/** Labels inside one another that JavaScript engines read without trouble. */
const MOST_LABELS = 500;

/** The source of a routine's function; undefined if it is left to the interpreter. */
function compileRoutine(
  routine: Routine,
  instructionAt: (address: number) => Instruction,
  context: Omit<Context, "goto" | "depth">,
): string | undefined {
  const flow = flowFrom(routine.start, instructionAt);
  if (flow === undefined || flow.blocks.length > MOST_LABELS) return undefined;
  // One that the routine does not have is a fault, which the interpreter tells.
  const missing = (variable: number): boolean => variable > routine.locals && variable < 16;
  if (flow.blocks.some(({ instructions }) => instructions.flatMap(variablesOf).some(missing)))
    return undefined;
  const body = structured(flow, context);
  const parameters = Math.min(routine.locals, MOST_PARAMETERS);
  const names = (prefix: string, from: number, to: number): readonly string[] =>
    Array.from({ length: Math.max(0, to - from) }, (_, at) => `${prefix}${from + at}`);
  const own = [
    ...names("l", parameters + 1, routine.locals + 1),
    ...names("s", 0, flow.deepest),
    ...["t", "u", "v", "e"],
  ];
  return `function r${routine.address.toString(16)}(${["n", ...names("l", 1, parameters + 1)]}){let ${own.map((name) => `${name}=0`)};if(--fuel[0]<0)bail();${body}bail();}`;
}

interface Writer {
  readonly flow: Flow;
  readonly root: Range;
  /** Blocks and loops that something jumps to, by head. */
  readonly labelled: ReadonlySet<number>;
  /** Blocks inside loops that are entered from outside. */
  readonly entries: ReadonlySet<number>;
  readonly context: Omit<Context, "goto" | "depth">;
}

function structured(flow: Flow, context: Omit<Context, "goto" | "depth">): string {
  const jumps = flow.blocks.flatMap(({ instructions }, from) =>
    jumpsTo(instructions.at(-1)!).map((address) => [from, flow.blockAt.get(address)!] as const),
  );
  const root = nestLoops(flow.blocks.length, jumps);
  const labelled = new Set<number>();
  const entries = new Set<number>();
  for (const [from, to] of jumps) {
    const route = routeTo(root, from, to);
    if (!route.back) labelled.add(route.head);
    // On the way in, every loop's head sends it on.
    for (let { entry, head } = route; entry !== 0; ) {
      entries.add(entry);
      ({ entry, head } = enter(rangeOf(root, head), entry));
      labelled.add(head);
    }
  }
  return writeRange(root, { flow, root, labelled, entries, context });
}

function writeRange(range: Range, writer: Writer): string {
  const { flow, labelled, entries } = writer;
  const items: (number | Range)[] = [];
  for (let block = Math.max(0, range.head); block <= range.last; ) {
    const loop = range.loops.find(({ head }) => head === block);
    items.push(loop ?? block);
    block = (loop?.last ?? block) + 1;
  }
  const headOf = (item: number | Range): number => (typeof item === "number" ? item : item.head);
  const labels = items.map(headOf).filter((head) => head !== range.head && labelled.has(head));
  let code = labels
    .toReversed()
    .map((head) => `L${head}:{`)
    .join("");
  for (const entry of entries) {
    if (range.head < 0 || entry <= range.head || entry > range.last) continue;
    const route = enter(range, entry);
    code += `if(e===${entry}){${route.entry === 0 ? "e=0;" : ""}break L${route.head};}`;
  }
  for (const item of items) {
    if (labels.includes(headOf(item))) code += "}";
    code +=
      typeof item === "number"
        ? writeBlock(item, flow, writer)
        : `C${item.head}:for(;;){if(--fuel[0]<0)bail();${writeRange(item, writer)}break;}`;
  }
  return code;
}

function writeBlock(block: number, flow: Flow, { root, context }: Writer): string {
  const { instructions, depth } = flow.blocks[block]!;
  const goto = (address: number): string => {
    const { entry, head, back } = routeTo(root, block, flow.blockAt.get(address)!);
    return `${entry === 0 ? "" : `e=${entry};`}${back ? `continue C${head};` : `break L${head};`}`;
  };
  const now: Context = { ...context, goto, depth };
  const code = instructions.map((instruction) => translate(instruction, now)).join("\n");
  const last = instructions.at(-1)!;
  // The next block in order must be the one that follows.
  return endsPath(last) || flow.blockAt.get(last.end) === block + 1 ? code : `${code}bail();`;
}

/** Calls of a routine before it is compiled. */
const HOT = 100;
/** Turns before anything is compiled, which takes as long as a few hundred turns. */
const TURNS_BEFORE = 40;

/** Plays turns of a story, compiling what is hot. */
export interface Player {
  /** Feeds a line to a state; the machine then waits for the next one. */
  turn(from: Snapshot, codes: readonly number[]): void;
}

/** Thrown to leave compiled code. */
class Bail extends Error {}

function bail(): never {
  throw new Bail();
}

/** A player for the story of a machine; it compiles nothing in its first turns. */
export function createPlayer(machine: Machine, turnsBefore = TURNS_BEFORE): Player {
  const fuel = new Int32Array(1);
  let compiler: Compiler | undefined;
  let turns = 0;
  const player: HotPlayer = {
    turn(from, codes) {
      keepHot(player);
      if (++turns > turnsBefore) compiler ??= createCompiler(machine, fuel);
      restoreSnapshot(machine, from);
      try {
        // Calls and rounds of loops are counted here, each of at least one instruction.
        fuel[0] = machine.turnLimit;
        machine.compiledFor = compiler;
        feedLine(machine, codes);
      } catch {
        machine.compiledFor = undefined;
        restoreSnapshot(machine, from);
        feedLine(machine, codes);
      } finally {
        machine.compiledFor = undefined;
      }
    },
    cool() {
      turns = 0;
      compiler = undefined;
      forgetCode(machine);
    },
  };
  return player;
}

/** A player that can drop what it has decoded and compiled, some ten megabytes. */
interface HotPlayer extends Player {
  cool(): void;
}

/** Players that keep their code; others begin anew when it is their turn. */
const MOST_HOT = 24;
const hot = new Set<HotPlayer>();

function keepHot(player: HotPlayer): void {
  hot.delete(player);
  hot.add(player);
  if (hot.size <= MOST_HOT) return;
  const coldest = hot.values().next().value!;
  hot.delete(coldest);
  coldest.cool();
}

type Compiler = (routine: Routine) => Compiled | undefined;

/** What gives a routine's function once it is hot. */
function createCompiler(machine: Machine, fuel: Int32Array): Compiler {
  const functions: Compiled[] = [];
  // Places of routines among the functions, by packed address; 0 before they have one.
  const places = new Uint16Array(Math.ceil(machine.story.size / 8));
  const enlist = (packed: number): number => {
    const routine = routineAt(machine, packed);
    if (routine.index < 0) {
      routine.index = functions.length;
      functions.push(routine.compiled ?? interpreted(routine));
    }
    places[packed] = routine.index + 1;
    return routine.index;
  };
  /** The function of a routine until it is compiled. */
  const interpreted = (routine: Routine): Compiled => {
    return (...given) => {
      const compiled = compiledFor(routine);
      return compiled === undefined ? runRoutine(machine, routine, given) : compiled(...given);
    };
  };
  const call = (
    packed: number,
    ...[n, a, b, c, d, e, f, g]: [number, number, number, number, number, number, number, number]
  ): number => {
    if (packed === 0) return 0;
    const place = places[packed] || enlist(packed) + 1;
    return functions[place - 1]!(n, a, b, c, d, e, f, g);
  };
  const helpers = { ...helpersOf(machine), F: functions, fuel, bail, call };
  const names = Object.keys(helpers);
  const context = {
    story: machine.story,
    routine(packed: number) {
      const index = enlist(packed);
      return { index, parameters: Math.min(routineAt(machine, packed).locals, MOST_PARAMETERS) };
    },
  };
  const compile = (routine: Routine): Compiled | undefined => {
    try {
      const source = compileRoutine(routine, (at) => decodeInstruction(machine.story, at), context);
      if (source === undefined) return undefined;
      const make = new Function(...names, `"use strict";return ${source}`);
      return make(...Object.values(helpers)) as Compiled;
    } catch {
      // Something on a path that may never be taken is wrong: the interpreter will say what.
      return undefined;
    }
  };
  const compiledFor = (routine: Routine): Compiled | undefined => {
    if (routine.compiled !== undefined) return routine.compiled ?? undefined;
    if (++routine.calls < HOT) return undefined;
    const made = compile(routine);
    routine.compiled = made ?? null;
    if (made !== undefined && routine.index >= 0) functions[routine.index] = made;
    return made;
  };
  return compiledFor;
}
