/**
 * Compiled routines. Routines that are called often become JavaScript functions, which call one
 * another. The few that are running while the story waits for a line are interpreted, so that
 * nothing of the wait is on JavaScript's own stack.
 *
 * Compiled code handles what correct stories do. Anything else (a question in the middle of a turn,
 * a fault) throws, and the turn is played again by the interpreter, whose answer counts.
 */
import { compileRoutine } from "./compile.js";
import { decodeInstruction } from "./instruction.js";
import { feedLine, runRoutine } from "./interpreter.js";
import { forgetCode, type Machine, restoreSnapshot, routineAt, type Snapshot } from "./machine.js";
import { helpersOf } from "./operations.js";
import type { Compiled, Routine } from "./routine.js";
import { MOST_PARAMETERS } from "./translate.js";

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
