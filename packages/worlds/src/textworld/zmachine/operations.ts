/**
 * What plain instructions do, written once as JavaScript: the interpreter calls it, and the compiler
 * puts it into the functions that it writes. `x`, `y` and `z` are the operands, `all` is their list.
 */

import { OPCODES } from "./instruction.js";
import {
  drawRandom,
  type Machine,
  type Operation,
  print,
  printCode,
  selectStream,
  textAt,
  writeByte,
  writeWord,
} from "./machine.js";
import { storyFault } from "./story.js";
import { encodeWord, readDictionary, tokenise } from "./text.js";

/** Of instructions by name: the value that they store or branch by, or what they do. */
export const OPERATIONS: Readonly<Record<string, string>> = {
  jl: "x<<16<y<<16",
  jg: "x<<16>y<<16",
  jz: "x===0",
  jin: "parent(x)===y",
  test: "(x&y)===y",
  test_attr: "has(x,y)",
  verify: "true",
  piracy: "true",
  or: "x|y",
  and: "x&y",
  not: "~x&65535",
  add: "x+y&65535",
  sub: "x-y&65535",
  mul: "Math.imul(x,y)&65535",
  div: "(x<<16>>16)/divisor(y)&65535",
  mod: "(x<<16>>16)%divisor(y)&65535",
  log_shift: "shift(x,y<<16>>16)&65535",
  art_shift: "shift(x<<16>>16,y<<16>>16)&65535",
  random: "random(x)",
  loadw: "word(x+2*y&65535)",
  loadb: "m[x+y&65535]",
  storew: "writeWord(x+2*y&65535,z)",
  storeb: "writeByte(x+y&65535,z)",
  get_parent: "parent(x)",
  get_sibling: "sibling(x)",
  get_child: "child(x)",
  get_prop: "property(x,y)",
  get_prop_addr: "propertyAddress(x,y)",
  get_prop_len: "propertyLength(x)",
  get_next_prop: "nextProperty(x,y)",
  put_prop: "setProperty(x,y,z)",
  set_attr: "give(x,y,true)",
  clear_attr: "give(x,y,false)",
  insert_obj: "insert(x,y)",
  remove_obj: "remove(x)",
  print_addr: "print(textAt(x))",
  print_paddr: "print(textAt(x*8))",
  print_obj: "print(name(x))",
  print_char: "printCode(x)",
  print_num: "print(String(x<<16>>16))",
  print_unicode: "print(String.fromCharCode(x))",
  new_line: 'print("\\n")',
  output_stream: "selectStream(x,y)",
  scan_table: "scanTable(all)",
  tokenise: "tokeniseAs(all)",
  encode_text: "encodeText(all)",
  copy_table: "copyTable(all)",
  print_table: "printTable(all)",
  get_cursor: "writeWord(x,1),writeWord(x+2,1)",
  // Not provided: games say so in their own words.
  save: "0",
  restore: "0",
  save_undo: "65535",
  restore_undo: "0",
  set_font: "0",
  // Can be printed, cannot be typed.
  check_unicode: "1",
  ...Object.fromEntries(
    "nop show_status set_colour split_window set_window erase_window erase_line set_cursor set_text_style buffer_mode input_stream sound_effect"
      .split(" ")
      .map((name) => [name, "all"]),
  ),
};

/** The operations of a machine's story by their codes; those with a list of operands are given one. */
export function operationsOf(machine: Machine): readonly (Operation | undefined)[] {
  const helpers = helpersOf(machine);
  const functions = OPCODES.map((opcode) => {
    const code = opcode && OPERATIONS[opcode.name];
    return code === undefined ? "undefined" : `(${takesList(code) ? "all" : "x,y,z"})=>(${code})`;
  });
  const make = new Function(...Object.keys(helpers), `"use strict";return [${functions}]`);
  return make(...Object.values(helpers)) as readonly (Operation | undefined)[];
}

/** Whether an operation is given the list of its operands. */
export const takesList = (code: string): boolean => /\ball\b/.test(code);

/** What operations call, by the names that they use. */
export function helpersOf(machine: Machine) {
  const { memory, story } = machine;
  return {
    ...machine.objects,
    m: memory,
    word: (at: number) => (memory[at]! << 8) | memory[at + 1]!,
    writeWord: (at: number, value: number) => writeWord(machine, at, value),
    writeByte: (at: number, value: number) => writeByte(machine, at, value),
    divisor(word: number): number {
      if (word === 0)
        throw storyFault(
          story,
          machine.frames[machine.depth - 1]!.routine.address,
          "a division by zero",
        );
      return (word << 16) >> 16;
    },
    shift: (number: number, places: number) => (places < 0 ? number >> -places : number << places),
    print: (text: string) => print(machine, text),
    printCode: (code: number) => printCode(machine, code),
    textAt: (address: number) => textAt(machine, address),
    random: (range: number) => drawRandom(machine, range),
    selectStream: (stream: number, table: number) => selectStream(machine, stream, table),
    scanTable: (operands: Operands) => scanTable(machine, operands),
    tokeniseAs: (operands: Operands) => tokeniseAs(machine, operands),
    encodeText: (operands: Operands) => encodeText(machine, operands),
    copyTable: (operands: Operands) => copyTable(machine, operands),
    printTable: (operands: Operands) => printTable(machine, operands),
  };
}

type Operands = readonly number[];

/** scan_table: the address of a value in a table, or 0. */
function scanTable(
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
function tokeniseAs(machine: Machine, [text = 0, parse = 0, at = 0, flag = 0]: Operands): void {
  const { story, memory } = machine;
  const dictionary = at === 0 ? machine.dictionary : readDictionary(story, memory, at);
  const write = (address: number, byte: number): void => writeByte(machine, address, byte);
  tokenise(dictionary, memory, text, parse, write, flag !== 0);
}

/** encode_text: a word as in the dictionary. */
function encodeText(machine: Machine, [text = 0, length = 0, from = 0, to = 0]: Operands): void {
  const word = machine.memory.subarray(text + from, text + from + length);
  encodeWord(word).forEach((byte, index) => {
    writeByte(machine, to + index, byte);
  });
}

/** copy_table: copies or clears; a negative size copies forwards even if the tables overlap. */
function copyTable(machine: Machine, [from = 0, to = 0, size = 0]: Operands): void {
  const { memory } = machine;
  const signed = (size << 16) >> 16;
  const length = Math.abs(signed);
  if (to === 0) for (let at = 0; at < length; at++) writeByte(machine, from + at, 0);
  else if (signed < 0 || from > to)
    for (let at = 0; at < length; at++) writeByte(machine, to + at, memory[from + at] ?? 0);
  else for (let at = length - 1; at >= 0; at--) writeByte(machine, to + at, memory[from + at] ?? 0);
}

/** print_table: a rectangle of characters. */
function printTable(machine: Machine, [from = 0, width = 0, height = 1, skip = 0]: Operands): void {
  for (let row = 0; row < height; row++) {
    if (row > 0) print(machine, "\n");
    const start = from + row * (width + skip);
    for (let at = 0; at < width; at++) printCode(machine, machine.memory[start + at] ?? 0);
  }
}
