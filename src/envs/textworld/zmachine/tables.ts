/** The rarer instructions: those that work on tables in memory, and those that are not provided. */
import { readDictionary, tokenise } from "./dictionary.js";
import { storyFault } from "./fault.js";
import type { Instruction } from "./instruction.js";
import { type Machine, print, printCode, writeByte, writeWord } from "./machine.js";
import { encodeWord } from "./text.js";

type Operands = readonly number[];

/** scan_table: the address of a value in a table, or 0. */
export function scanTable(
  { memory }: Machine,
  [x = 0, table = 0, count = 0, form = 0x82]: Operands,
): number {
  const step = form & 0x7f;
  const words = (form & 0x80) !== 0;
  for (let index = 0, at = table; index < count; index++, at = (at + step) & 0xffff) {
    const found = words ? (memory[at]! << 8) | memory[at + 1]! : memory[at]!;
    if (found === x) return at;
  }
  return 0;
}

/** tokenise: splits a line with any dictionary. */
export function tokeniseAs(
  machine: Machine,
  [text = 0, parse = 0, at = 0, flag = 0]: Operands,
): void {
  const { story, memory } = machine;
  const dictionary = at === 0 ? machine.dictionary : readDictionary(story, memory, at);
  const write = (address: number, byte: number): void => writeByte(machine, address, byte);
  tokenise(dictionary, memory, text, parse, write, flag !== 0);
}

/** encode_text: a word as in the dictionary. */
export function encodeText(
  machine: Machine,
  [text = 0, length = 0, from = 0, to = 0]: Operands,
): void {
  const word = machine.memory.subarray(text + from, text + from + length);
  encodeWord(word).forEach((byte, index) => {
    writeByte(machine, to + index, byte);
  });
}

/** copy_table: copies or clears; a negative size copies forwards even if the tables overlap. */
export function copyTable(machine: Machine, [from = 0, to = 0, size = 0]: Operands): void {
  const { memory } = machine;
  const signed = (size << 16) >> 16;
  const length = Math.abs(signed);
  if (to === 0) for (let at = 0; at < length; at++) writeByte(machine, from + at, 0);
  else if (signed < 0 || from > to)
    for (let at = 0; at < length; at++) writeByte(machine, to + at, memory[from + at] ?? 0);
  else for (let at = length - 1; at >= 0; at--) writeByte(machine, to + at, memory[from + at] ?? 0);
}

/** print_table: a rectangle of characters. */
export function printTable(
  machine: Machine,
  [from = 0, width = 0, height = 1, skip = 0]: Operands,
): void {
  for (let row = 0; row < height; row++) {
    if (row > 0) print(machine, "\n");
    const start = from + row * (width + skip);
    for (let at = 0; at < width; at++) printCode(machine, machine.memory[start + at] ?? 0);
  }
}

/**
 * The result of an instruction that asks for something not provided, such as saving; undefined if
 * it has none.
 */
export function unprovided(
  machine: Machine,
  instruction: Instruction,
  operands: Operands,
): number | undefined {
  const fault = (problem: string): never => {
    throw storyFault(machine.story, instruction.address, problem);
  };
  switch (instruction.op) {
    case 96: // save
    case 97: // restore
    case 100: // set_font
    case 106: // restore_undo
      return 0;
    case 105: // save_undo: there is no undo, and the game says so in its own words
      return 0xffff;
    case 108: // check_unicode: can be printed, cannot be typed
      return 1;
    case 80: // get_cursor
      writeWord(machine, operands[0]!, 1);
      writeWord(machine, operands[0]! + 2, 1);
      return undefined;
    case 58:
      return fault("the story has ended: it was told to quit");
    case 55:
      return fault("the story was told to restart; reset the episode instead");
    case 86:
      return fault("the story waits for a single key, which TextWorld's games never do");
    default:
      return fault(`there is no instruction ${instruction.op}`);
  }
}
