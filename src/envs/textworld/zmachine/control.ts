/** Where the interpreter goes on: the next instruction, a jump, a return, a call. */
import { storyFault } from "./fault.js";
import { HOST, type Instruction } from "./instruction.js";
import { instructionAt, type Machine, popFrame, pushFrame, routineAt, waitKey } from "./machine.js";
import { assign, value } from "./variables.js";

/** The instruction after one. */
export function follow(machine: Machine, instruction: Instruction): Instruction {
  instruction.next ??= instructionAt(machine, instruction.end);
  return instruction.next;
}

/** The instruction that one jumps to. */
export function jump(machine: Machine, instruction: Instruction): Instruction {
  instruction.jump ??= instructionAt(machine, instruction.target);
  return instruction.jump;
}

/** Returns from the running routine. */
export function leave(machine: Machine, result: number): Instruction {
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
export function branch(machine: Machine, instruction: Instruction, holds: boolean): Instruction {
  if (holds !== (instruction.branchIf === 1)) return follow(machine, instruction);
  const { target } = instruction;
  return target < 2 ? leave(machine, target) : jump(machine, instruction);
}

/** Calls a routine: its function if it is compiled, or a new frame. */
export function call(machine: Machine, instruction: Instruction): Instruction {
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
}

const given = new Uint16Array(7);
