/** Runs a story, instruction by instruction, until it waits for a line. */

import { HOST, type Instruction, OPCODES, type Routine } from "./instruction.js";
import {
  instructionAt,
  type Machine,
  outermost,
  popFrame,
  print,
  pushFrame,
  routineAt,
  waitKey,
  writeByte,
} from "./machine.js";
import { OPERATIONS, operationsOf, takesList } from "./operations.js";
import { storyFault } from "./story.js";
import { tokenise } from "./text.js";

/** Starts the story and runs it to the first line of input. */
export function startStory(machine: Machine): void {
  const { story } = machine;
  if (machine.operations.length === 0) machine.operations = operationsOf(machine);
  machine.memory.set(story.initial);
  machine.depth = 0;
  machine.top = 0;
  machine.transcript = "";
  machine.fuel = machine.turnLimit;
  pushFrame(machine, outermost(story), undefined, 0);
  run(machine, instructionAt(machine, story.start));
}

/** Gives the waiting story a line and runs it to the next one; `codes` are character codes. */
export function feedLine(machine: Machine, codes: readonly number[]): void {
  const { waiting, memory } = machine;
  if (waiting === undefined) throw new Error("the story does not wait for a line");
  machine.waiting = undefined;
  machine.fuel = machine.turnLimit;
  const text = value(machine, waiting.operands[0]!);
  const parse = waiting.operands.length > 1 ? value(machine, waiting.operands[1]!) : 0;
  const line = codes.slice(0, memory[text]!);
  line.forEach((code, index) => {
    writeByte(machine, text + 2 + index, code >= 65 && code <= 90 ? code + 32 : code);
  });
  writeByte(machine, text + 1, line.length);
  print(machine, "\n");
  if (parse !== 0)
    tokenise(machine.dictionary, memory, text, parse, (at, byte) => writeByte(machine, at, byte));
  assign(machine, waiting.store, 13);
  run(machine, follow(machine, waiting));
}

/** Runs a routine that compiled code calls; `passed` is how many arguments, and the arguments. */
export function runRoutine(machine: Machine, routine: Routine, passed: readonly number[]): number {
  pushFrame(machine, routine, HOST, passed[0]!);
  const taken = Math.min(routine.locals, passed.length - 1);
  for (let at = 0; at < taken; at++) machine.stack[machine.locals + at] = passed[at + 1]!;
  routine.entry ??= instructionAt(machine, routine.start);
  run(machine, routine.entry);
  if (machine.waiting !== undefined) throw new Error("the story waits inside compiled code");
  return machine.result;
}

function run(machine: Machine, from: Instruction): void {
  for (let instruction = from; instruction !== HOST; ) {
    if (--machine.fuel < 0)
      throw storyFault(
        machine.story,
        instruction.address,
        `a turn takes more than ${machine.turnLimit.toLocaleString("en")} instructions`,
      );
    instruction = (STEPS[instruction.code] ?? missing)(machine, instruction);
  }
}

/** The instruction after one. */
function follow(machine: Machine, instruction: Instruction): Instruction {
  instruction.next ??= instructionAt(machine, instruction.end);
  return instruction.next;
}

/** The instruction that one jumps to. */
function jump(machine: Machine, instruction: Instruction): Instruction {
  instruction.jump ??= instructionAt(machine, instruction.target);
  return instruction.jump;
}

/** Returns from the running routine. */
function leave(machine: Machine, result: number): Instruction {
  const call = popFrame(machine);
  if (call === undefined) throw storyFault(machine.story, 0, "the outermost routine returns");
  if (call === HOST) {
    machine.result = result;
    return HOST;
  }
  assign(machine, call.store, result);
  return follow(machine, call);
}

/** Goes on by whether a condition holds. */
function branch(machine: Machine, instruction: Instruction, holds: boolean): Instruction {
  if (holds !== (instruction.branchIf === 1)) return follow(machine, instruction);
  const { target } = instruction;
  return target < 2 ? leave(machine, target) : jump(machine, instruction);
}

/** Carries an instruction out and returns the one to go on with; `HOST` ends the run. */
type Step = (machine: Machine, instruction: Instruction) => Instruction;

/** Calls a routine: its function if it is compiled, or a new frame. */
const call: Step = (machine, instruction) => {
  const { operands } = instruction;
  const packed = value(machine, operands[0]!);
  const count = operands.length - 1;
  if (packed === 0) {
    for (let at = 1; at <= count; at++) value(machine, operands[at]!);
    assign(machine, instruction.store, 0);
    return follow(machine, instruction);
  }
  const routine = routineAt(machine, packed);
  // Read before the frame is there: they belong to the caller.
  for (let at = 1; at <= count; at++) given[at - 1] = value(machine, operands[at]!);
  if (machine.compiledFor !== undefined && !machine.waits.has(waitKey(instruction, routine))) {
    const compiled = machine.compiledFor(routine);
    if (compiled !== undefined) {
      given.fill(0, count);
      const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0] = given;
      assign(machine, instruction.store, compiled(count, a, b, c, d, e, f, g));
      return follow(machine, instruction);
    }
  }
  pushFrame(machine, routine, instruction, count);
  const taken = Math.min(count, routine.locals);
  for (let at = 0; at < taken; at++) machine.stack[machine.locals + at] = given[at]!;
  routine.entry ??= instructionAt(machine, routine.start);
  return routine.entry;
};

const given = new Uint16Array(7);

/** Changes a variable by one, and compares it with a limit. */
const check =
  (step: 1 | -1): Step =>
  (machine, instruction) => {
    const name = value(machine, instruction.a);
    const limit = signed(value(machine, instruction.b));
    const changed = signed(peek(machine, name) + step);
    replace(machine, name, changed & 0xffff);
    return branch(machine, instruction, step < 0 ? changed < limit : changed > limit);
  };

const count =
  (step: 1 | -1): Step =>
  (machine, instruction) => {
    const name = value(machine, instruction.a);
    replace(machine, name, (peek(machine, name) + step) & 0xffff);
    return follow(machine, instruction);
  };

const fault =
  (problem: string): Step =>
  ({ story }, { address }) => {
    throw storyFault(story, address, problem);
  };

const missing: Step = (machine, instruction) =>
  fault(`there is no instruction ${instruction.op}`)(machine, instruction);

/** Frames are counted only if all of them are interpreted. */
function leaveToInterpreter(machine: Machine): void {
  if (machine.compiledFor !== undefined) throw new Error("frames are counted");
}

/** The instructions that touch variables by name, the stack or the order of the program. */
const CONTROL: Readonly<Record<string, Step>> = {
  je(machine, instruction) {
    const { a, operands } = instruction;
    const left = value(machine, a);
    let equal = false;
    for (let at = 1; at < operands.length; at++)
      if (value(machine, operands[at]!) === left) equal = true;
    return branch(machine, instruction, equal);
  },
  dec_chk: check(-1),
  inc_chk: check(1),
  dec: count(-1),
  inc: count(1),
  store(machine, instruction) {
    const name = value(machine, instruction.a);
    replace(machine, name, value(machine, instruction.b));
    return follow(machine, instruction);
  },
  load(machine, instruction) {
    assign(machine, instruction.store, peek(machine, value(machine, instruction.a)));
    return follow(machine, instruction);
  },
  push(machine, instruction) {
    push(machine, value(machine, instruction.a));
    return follow(machine, instruction);
  },
  pull(machine, instruction) {
    const name = value(machine, instruction.a);
    replace(machine, name, pop(machine));
    return follow(machine, instruction);
  },
  ...Object.fromEntries(
    "call_1s call_1n call_2s call_2n call_vs call_vn call_vs2 call_vn2"
      .split(" ")
      .map((name) => [name, call]),
  ),
  check_arg_count: (machine, instruction) =>
    branch(
      machine,
      instruction,
      machine.frames[machine.depth - 1]!.arguments >= value(machine, instruction.a),
    ),
  jump(machine, instruction) {
    if (instruction.a < 0)
      throw storyFault(machine.story, instruction.address, "a jump to a computed address");
    return jump(machine, instruction);
  },
  ret: (machine, { a }) => leave(machine, value(machine, a)),
  rtrue: (machine) => leave(machine, 1),
  rfalse: (machine) => leave(machine, 0),
  ret_popped: (machine) => leave(machine, pop(machine)),
  print(machine, instruction) {
    print(machine, instruction.text);
    return follow(machine, instruction);
  },
  print_ret(machine, { text }) {
    print(machine, `${text}\n`);
    return leave(machine, 1);
  },
  catch(machine, instruction) {
    leaveToInterpreter(machine);
    assign(machine, instruction.store, machine.depth);
    return follow(machine, instruction);
  },
  throw(machine, { a, b, address }) {
    leaveToInterpreter(machine);
    const result = value(machine, a);
    const depth = value(machine, b);
    if (depth < 1 || depth > machine.depth)
      throw storyFault(machine.story, address, "a throw to a routine that has ended");
    while (machine.depth > depth) popFrame(machine);
    return leave(machine, result);
  },
  aread(machine, instruction) {
    machine.waiting = instruction;
    return HOST;
  },
  quit: fault("the story has ended: it was told to quit"),
  restart: fault("the story was told to restart; reset the episode instead"),
  read_char: fault("the story waits for a single key, which TextWorld's games never do"),
};

/** An operation of up to three operands. */
const operate: Step = (machine, instruction) => {
  const { a, b, operands, code } = instruction;
  const x = value(machine, a);
  const y = value(machine, b);
  const z = operands.length > 2 ? value(machine, operands[2]!) : 0;
  return result(machine, instruction, machine.operations[code]!(x, y, z));
};

const operateOnList: Step = (machine, instruction) => {
  const values = instruction.operands.map((operand) => value(machine, operand));
  return result(machine, instruction, machine.operations[instruction.code]!(values));
};

/** Stores a result, branches by it, or goes on. */
function result(machine: Machine, instruction: Instruction, given: number | boolean): Instruction {
  if (instruction.store >= 0) assign(machine, instruction.store, given as number);
  return instruction.branchIf < 0
    ? follow(machine, instruction)
    : branch(machine, instruction, Boolean(given));
}

/** What carries out each instruction, by its code. */
const STEPS: readonly (Step | undefined)[] = OPCODES.map((opcode) => {
  if (opcode === undefined) return undefined;
  const operation = OPERATIONS[opcode.name];
  if (operation === undefined) return CONTROL[opcode.name];
  return takesList(operation) ? operateOnList : operate;
});

/** A word as a signed number. */
function signed(word: number): number {
  return (word << 16) >> 16;
}

/** The value of an operand; reading variable 0 takes it from the stack. */
function value(machine: Machine, operand: number): number {
  return operand >= 0 ? operand : variable(machine, ~operand);
}

/** The value of a variable. */
function variable(machine: Machine, number: number): number {
  if (number === 0) return pop(machine);
  if (number < 16) return machine.stack[local(machine, number)]!;
  const address = machine.story.globals + 2 * number;
  return (machine.memory[address]! << 8) | machine.memory[address + 1]!;
}

/** Stores into a variable; variable 0 pushes, -1 is nowhere. */
function assign(machine: Machine, number: number, word: number): void {
  if (number === 0) push(machine, word);
  else if (number > 15) {
    const address = machine.story.globals + 2 * number;
    machine.memory[address] = word >> 8;
    machine.memory[address + 1] = word;
  } else if (number > 0) machine.stack[local(machine, number)] = word;
}

/** The place of a local variable in the stack. */
function local(machine: Machine, number: number): number {
  const place = machine.locals + number - 1;
  if (place < machine.floor) return place;
  throw storyFault(
    machine.story,
    machine.frames[machine.depth - 1]!.routine.address,
    `a routine of ${machine.floor - machine.locals} local variables names number ${number}`,
  );
}

/** The same where an operand names the variable: the stack is then looked at, not taken from. */
function peek(machine: Machine, number: number): number {
  return number === 0 ? machine.stack[machine.top - 1]! : variable(machine, number);
}

/** Stores into a variable that an operand names: the top of the stack is replaced. */
function replace(machine: Machine, number: number, word: number): void {
  if (number === 0) machine.stack[machine.top - 1] = word;
  else assign(machine, number, word);
}

/** Pushes onto the stack. */
function push(machine: Machine, word: number): void {
  if (machine.top >= machine.stack.length)
    throw storyFault(machine.story, 0, "the stack is full: something is pushed without end");
  machine.stack[machine.top++] = word;
}

/** Takes from the stack. */
function pop(machine: Machine): number {
  if (machine.top <= machine.floor)
    throw storyFault(
      machine.story,
      machine.frames[machine.depth - 1]!.routine.address,
      "a routine takes from an empty stack",
    );
  return machine.stack[--machine.top]!;
}
