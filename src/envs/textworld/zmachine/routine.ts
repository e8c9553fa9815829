/** Routines of a story, found when they are first called. */
import type { Instruction } from "./instruction.js";
import { type Story, storyFault } from "./story.js";

/** A routine as a JavaScript function: of the number of arguments given, and the arguments. */
export type Compiled = (...given: number[]) => number;

/** A routine: how many local variables it has, and where it begins. */
export interface Routine {
  readonly address: number;
  readonly locals: number;
  /** Address of its first instruction. */
  readonly start: number;
  /** Its first instruction, once it has run. */
  entry: Instruction | undefined;
  /** How often it was called before it was compiled. */
  calls: number;
  /** Its function, once it is compiled; null if it cannot be. */
  compiled: Compiled | null | undefined;
  /** Its place among the functions of the story; -1 before it has one. */
  index: number;
}

const MOST_LOCALS = 15;

/** A routine that has not run yet. */
export function newRoutine(address: number, locals: number, start: number): Routine {
  return {
    address,
    locals,
    start,
    entry: undefined,
    calls: 0,
    compiled: undefined,
    index: -1,
  };
}

/** The routine at a packed address. */
export function readRoutine(story: Story, packed: number): Routine {
  const address = packed * 8;
  if (address < story.staticMark || address >= story.size)
    throw storyFault(story, address, "a call to a routine outside the memory for programs");
  const locals = story.bytes[address]!;
  if (locals > MOST_LOCALS)
    throw storyFault(story, address, "a call to something that is no routine");
  return newRoutine(address, locals, address + 1);
}
