/**
 * A Z-machine: memory, stack, generator of random numbers and output. One machine serves all the
 * games of a story that are being played: each puts its state in, plays a turn and takes it out.
 */

import {
  type Compiled,
  decodeInstruction,
  type Instruction,
  newRoutine,
  type Routine,
  readRoutine,
} from "./instruction.js";
import { createObjects, type Objects } from "./objects.js";
import { type Story, storyFault } from "./story.js";
import { character, type Dictionary, decodeText, readDictionary } from "./text.js";

/** A routine that is running. */
interface Frame {
  routine: Routine;
  /** The instruction that called it; none for the outermost. */
  call: Instruction | undefined;
  /** Where its local variables begin in the stack. */
  locals: number;
  /** How many arguments it was given. */
  arguments: number;
}

/** A plain instruction as a function of its operands, or of their list. */
// biome-ignore lint/suspicious/noExplicitAny: some take a list, some give a truth value, some nothing.
export type Operation = (...operands: any[]) => number | boolean;

/** A machine; the interpreter and compiled routines change it. */
export interface Machine {
  readonly story: Story;
  readonly memory: Uint8Array;
  readonly objects: Objects;
  readonly dictionary: Dictionary;
  readonly routines: Map<number, Routine>;
  /** Instructions that were decoded, by address. */
  readonly code: Map<number, Instruction>;
  /** Calls of routines that were running while the story waited (`waitKey`). */
  readonly waits: Set<number>;
  readonly stack: Uint16Array;
  /** The next free place in the stack. */
  top: number;
  /** Where the running routine's local variables begin, and where its own part of the stack does. */
  locals: number;
  floor: number;
  readonly frames: Frame[];
  /** How many of `frames` are in use. */
  depth: number;
  /** The instruction that waits for a line of input. */
  waiting: Instruction | undefined;
  /** What was printed since it was last emptied. */
  transcript: string;
  /** Whether the screen is on, and the tables in memory that take output instead of it. */
  screen: boolean;
  readonly tables: { address: number; length: number }[];
  /** The generator: a counter up to `limit`, or with limit 0 a linear congruential one. */
  random: number;
  randomLimit: number;
  /** Instructions that a turn may take, and those that are left in this one. */
  readonly turnLimit: number;
  fuel: number;
  /** What the routine returned that JavaScript called last. */
  result: number;
  /** The function of a routine, if it is compiled and compiled code may be used. */
  compiledFor: ((routine: Routine) => Compiled | undefined) | undefined;
  /** Texts that never change, by address. */
  readonly texts: Map<number, string>;
  /** Plain instructions by their codes; made when the story starts. */
  operations: readonly (Operation | undefined)[];
}

/**
 * A state of a machine that waits for input; nobody changes it. It names routines and instructions
 * by address, so that what the machine has decoded and compiled can be dropped meanwhile.
 */
export interface Snapshot {
  readonly memory: Uint8Array;
  readonly stack: Uint16Array;
  /** Of each frame: the routine, the call (0 for none), where its locals begin, its arguments. */
  readonly frames: Int32Array;
  readonly waiting: number;
  readonly random: number;
  readonly randomLimit: number;
}

const STACK_WORDS = 32_768;
/** Places that must be free when a routine is called. */
const STACK_RESERVE = 1024;
const MOST_FRAMES = 2000;
/** More output than this in one turn never ends. */
const LONGEST_TRANSCRIPT = 1_000_000;
/** Instructions of one turn; the longest ones of TextWorld's games take some 800,000. */
const TURN_LIMIT = 20_000_000;

/** The machine of a story, which has not begun; there is one for each. */
export function createMachine(story: Story, turnLimit = TURN_LIMIT): Machine {
  const memory = story.bytes;
  return {
    story,
    memory,
    objects: createObjects(story, memory),
    dictionary: readDictionary(story, memory, story.dictionary),
    routines: new Map(),
    code: new Map(),
    waits: new Set(),
    stack: new Uint16Array(STACK_WORDS),
    top: 0,
    locals: 0,
    floor: 0,
    frames: [],
    depth: 0,
    waiting: undefined,
    transcript: "",
    screen: true,
    tables: [],
    random: 0,
    randomLimit: 0,
    turnLimit,
    fuel: 0,
    result: 0,
    compiledFor: undefined,
    texts: new Map(),
    operations: [],
  };
}

const FRAME_FIELDS = 4;

/** The state of a machine that waits for input. */
export function takeSnapshot(machine: Machine): Snapshot {
  const { waiting, random, randomLimit, depth } = machine;
  if (waiting === undefined) throw new Error("a machine that does not wait has no snapshot");
  const frames = new Int32Array(depth * FRAME_FIELDS);
  for (let at = 0; at < depth; at++) {
    const { routine, call, locals, arguments: count } = machine.frames[at]!;
    frames.set([routine.address, call?.address ?? 0, locals, count], at * FRAME_FIELDS);
  }
  return {
    memory: machine.memory.slice(0, machine.story.staticMark),
    stack: machine.stack.slice(0, machine.top),
    frames,
    waiting: waiting.address,
    random,
    randomLimit,
  };
}

/** Puts a state into a machine. */
export function restoreSnapshot(machine: Machine, snapshot: Snapshot): void {
  machine.memory.set(snapshot.memory);
  machine.depth = 0;
  for (let at = 0; at < snapshot.frames.length; at += FRAME_FIELDS) {
    const [address = 0, call = 0, locals = 0, count = 0] = snapshot.frames.subarray(at);
    const routine = address === 0 ? outermost(machine.story) : routineAt(machine, address / 8);
    machine.top = locals;
    pushFrame(machine, routine, call === 0 ? undefined : instructionAt(machine, call), count);
  }
  // Pushing frames has cleared their locals.
  machine.stack.set(snapshot.stack);
  machine.top = snapshot.stack.length;
  machine.waiting = instructionAt(machine, snapshot.waiting);
  machine.random = snapshot.random;
  machine.randomLimit = snapshot.randomLimit;
  machine.transcript = "";
  machine.screen = true;
  machine.tables.length = 0;
}

/** The program before the first routine, which belongs to none. */
export function outermost(story: Story): Routine {
  return newRoutine(0, 0, story.start);
}

/** Notes which calls have led to this wait, so that they are left to the interpreter. */
export function noteWaits(machine: Machine): void {
  for (let at = 0; at < machine.depth; at++) {
    const { call, routine } = machine.frames[at]!;
    if (call !== undefined) machine.waits.add(waitKey(call, routine));
  }
}

/** A call of a routine as a number. */
export function waitKey(call: Instruction, routine: Routine): number {
  return call.address * 2 ** 20 + routine.address;
}

/** Drops what was decoded and compiled; it is made again when it is needed. */
export function forgetCode(machine: Machine): void {
  machine.code.clear();
  machine.routines.clear();
  machine.texts.clear();
  machine.frames.length = 0;
  machine.waiting = undefined;
}

/** The routine at a packed address. */
export function routineAt(machine: Machine, packed: number): Routine {
  let routine = machine.routines.get(packed);
  if (routine === undefined) {
    routine = readRoutine(machine.story, packed);
    machine.routines.set(packed, routine);
  }
  return routine;
}

/** The instruction at an address. */
export function instructionAt(machine: Machine, address: number): Instruction {
  let instruction = machine.code.get(address);
  if (instruction === undefined) {
    instruction = decodeInstruction(machine.story, address);
    machine.code.set(address, instruction);
  }
  return instruction;
}

/** Begins a routine: its frame, and its local variables with nothing in them. */
export function pushFrame(
  machine: Machine,
  routine: Routine,
  call: Instruction | undefined,
  count: number,
): void {
  const { top, stack, depth } = machine;
  if (top + STACK_RESERVE > STACK_WORDS || depth >= MOST_FRAMES)
    throw storyFault(machine.story, routine.address, "routines call each other without end");
  const frame = machine.frames[depth];
  if (frame === undefined) {
    machine.frames.push({ routine, call, locals: top, arguments: count });
  } else {
    frame.routine = routine;
    frame.call = call;
    frame.locals = top;
    frame.arguments = count;
  }
  machine.depth = depth + 1;
  machine.locals = top;
  machine.top = top + routine.locals;
  machine.floor = machine.top;
  for (let at = top; at < machine.top; at++) stack[at] = 0;
}

/** Ends the running routine and returns the instruction that called it. */
export function popFrame(machine: Machine): Instruction | undefined {
  const depth = --machine.depth;
  const { call, locals } = machine.frames[depth]!;
  machine.top = locals;
  if (depth > 0) {
    const below = machine.frames[depth - 1]!;
    machine.locals = below.locals;
    machine.floor = below.locals + below.routine.locals;
  }
  return call;
}

/** Changes a byte of dynamic memory. */
export function writeByte(machine: Machine, address: number, value: number): void {
  if (address >= machine.story.staticMark)
    throw storyFault(machine.story, address, "something is written into memory that never changes");
  machine.memory[address] = value & 0xff;
}

/** Changes a word of dynamic memory. */
export function writeWord(machine: Machine, address: number, value: number): void {
  writeByte(machine, address, value >> 8);
  writeByte(machine, address + 1, value);
}

/** Prints on the screen, or into the table that was opened last. */
export function print(machine: Machine, text: string): void {
  const table = machine.tables.at(-1);
  if (table !== undefined) {
    for (const letter of text) {
      const code = letter === "\n" ? 13 : letter.charCodeAt(0);
      writeByte(machine, table.address + 2 + table.length++, code);
    }
  } else if (machine.screen) {
    machine.transcript += text;
    if (machine.transcript.length > LONGEST_TRANSCRIPT)
      throw storyFault(machine.story, 0, "the story prints without end");
  }
}

/** Prints a character by its code. */
export function printCode(machine: Machine, code: number): void {
  print(machine, character(code));
}

/** The text at an address; what cannot change is decoded once. */
export function textAt(machine: Machine, address: number): string {
  const { story, memory, texts } = machine;
  if (address < story.staticMark) return decodeText(story, memory, address).text;
  let text = texts.get(address);
  if (text === undefined) {
    ({ text } = decodeText(story, memory, address));
    texts.set(address, text);
  }
  return text;
}

/** Turns a stream of output on or off: 1 is the screen, 3 a table in memory. */
export function selectStream(machine: Machine, stream: number, table: number): void {
  if (stream === 1) machine.screen = true;
  else if (stream === 0xffff) machine.screen = false;
  else if (stream === 3) {
    if (machine.tables.length >= 16)
      throw storyFault(machine.story, table, "more than 16 tables take output at once");
    machine.tables.push({ address: table, length: 0 });
  } else if (stream === 0xfffd) {
    const closed = machine.tables.pop();
    if (closed !== undefined) writeWord(machine, closed.address, closed.length);
  }
}

/** A random number from 1 to `range`; a range of 0 or less seeds the generator. */
export function drawRandom(machine: Machine, range: number): number {
  const signed = (range << 16) >> 16;
  if (signed <= 0) {
    const seed = -signed;
    machine.randomLimit = seed < 1000 ? seed : 0;
    machine.random = seed < 1000 ? 0 : seed;
    return 0;
  }
  let drawn: number;
  if (machine.randomLimit > 0) {
    drawn = machine.random++;
    if (machine.random >= machine.randomLimit) machine.random = 0;
  } else {
    machine.random = (Math.imul(machine.random, 0x015a4e35) + 1) | 0;
    drawn = (machine.random >> 16) & 0x7fff;
  }
  return (drawn % signed) + 1;
}
