/** Variables of a running routine: the stack is 0, local ones are 1 to 15, global ones 16 to 255. */
import type { Machine } from "./machine.js";
import { storyFault } from "./story.js";

/** A word as a signed number. */
export function signed(word: number): number {
  return (word << 16) >> 16;
}

/** The value of an operand; reading variable 0 takes it from the stack. */
export function value(machine: Machine, operand: number): number {
  return operand >= 0 ? operand : variable(machine, ~operand);
}

/** The value of a variable. */
export function variable(machine: Machine, number: number): number {
  if (number === 0) return pop(machine);
  if (number < 16) return machine.stack[local(machine, number)]!;
  const address = machine.story.globals + 2 * number;
  return (machine.memory[address]! << 8) | machine.memory[address + 1]!;
}

/** Stores into a variable; variable 0 pushes, -1 is nowhere. */
export function assign(machine: Machine, number: number, word: number): void {
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
export function peek(machine: Machine, number: number): number {
  return number === 0 ? machine.stack[machine.top - 1]! : variable(machine, number);
}

/** Stores into a variable that an operand names: the top of the stack is replaced. */
export function replace(machine: Machine, number: number, word: number): void {
  if (number === 0) machine.stack[machine.top - 1] = word;
  else assign(machine, number, word);
}

/** Pushes onto the stack. */
export function push(machine: Machine, word: number): void {
  if (machine.top >= machine.stack.length)
    throw storyFault(machine.story, 0, "the stack is full: something is pushed without end");
  machine.stack[machine.top++] = word;
}

/** Takes from the stack. */
export function pop(machine: Machine): number {
  if (machine.top <= machine.floor)
    throw storyFault(
      machine.story,
      machine.frames[machine.depth - 1]!.routine.address,
      "a routine takes from an empty stack",
    );
  return machine.stack[--machine.top]!;
}
