/** Routines of a story, found when they are first called. */
import { storyFault } from "./fault.js";
import type { Instruction } from "./instruction.js";
import type { Story } from "./story.js";

/** A routine: how many local variables it has, and where it begins. */
export interface Routine {
  readonly address: number;
  readonly locals: number;
  /** Address of its first instruction. */
  readonly start: number;
  /** Its first instruction, once it has run. */
  entry: Instruction | undefined;
  /** How often it was called in the interpreter. */
  calls: number;
}

const MOST_LOCALS = 15;

/** The routine at a packed address. */
export function readRoutine(story: Story, packed: number): Routine {
  const address = packed * 8;
  if (address < story.staticMark || address >= story.size)
    throw storyFault(story, address, "a call to a routine outside the memory for programs");
  const locals = story.bytes[address]!;
  if (locals > MOST_LOCALS)
    throw storyFault(story, address, `a call to something that is no routine`);
  return { address, locals, start: address + 1, entry: undefined, calls: 0 };
}
