/**
 * Runs a story, instruction by instruction, until it waits for a line. The numbers of the cases are
 * those of `instruction.ts`: 2OP as they are, 1OP + 32, 0OP + 48, VAR + 64, EXT + 96.
 */
import { branch, call, follow, jump, leave } from "./control.js";
import { tokenise } from "./dictionary.js";
import { storyFault } from "./fault.js";
import { HOST, type Instruction } from "./instruction.js";
import {
  drawRandom,
  instructionAt,
  type Machine,
  outermost,
  popFrame,
  print,
  printCode,
  pushFrame,
  selectStream,
  textAt,
  writeByte,
  writeWord,
} from "./machine.js";
import type { Routine } from "./routine.js";
import { copyTable, encodeText, printTable, scanTable, tokeniseAs, unprovided } from "./tables.js";
import { assign, peek, pop, push, replace, signed, value, variable } from "./variables.js";

/** Starts the story and runs it to the first line of input. */
export function startStory(machine: Machine): void {
  const { story } = machine;
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

/** Frames are counted only if all of them are interpreted. */
function leaveToInterpreter(machine: Machine): void {
  if (machine.compiledFor !== undefined) throw new Error("frames are counted");
}

function run(machine: Machine, from: Instruction): void {
  const { memory, objects, story } = machine;
  const read = (operand: number): number => (operand >= 0 ? operand : variable(machine, ~operand));
  let instruction = from;
  for (;;) {
    if (--machine.fuel < 0)
      throw storyFault(
        story,
        instruction.address,
        `a turn takes more than ${machine.turnLimit.toLocaleString("en")} instructions`,
      );
    const { op, a, b, operands, store } = instruction;
    switch (op) {
      case 1: {
        // je
        const left = read(a);
        let equal = false;
        for (let at = 1; at < operands.length; at++) if (read(operands[at]!) === left) equal = true;
        instruction = branch(machine, instruction, equal);
        continue;
      }
      case 2: // jl
        instruction = branch(machine, instruction, signed(read(a)) < signed(read(b)));
        continue;
      case 3: // jg
        instruction = branch(machine, instruction, signed(read(a)) > signed(read(b)));
        continue;
      case 4: // dec_chk
      case 5: {
        // inc_chk
        const name = read(a);
        const limit = signed(read(b));
        const changed = signed(peek(machine, name) + (op === 4 ? -1 : 1));
        replace(machine, name, changed & 0xffff);
        instruction = branch(machine, instruction, op === 4 ? changed < limit : changed > limit);
        continue;
      }
      case 6: // jin
        instruction = branch(machine, instruction, objects.parent(read(a)) === read(b));
        continue;
      case 7: {
        // test
        const bits = read(a);
        const mask = read(b);
        instruction = branch(machine, instruction, (bits & mask) === mask);
        continue;
      }
      case 8: // or
        assign(machine, store, read(a) | read(b));
        break;
      case 9: // and
        assign(machine, store, read(a) & read(b));
        break;
      case 10: // test_attr
        instruction = branch(machine, instruction, objects.has(read(a), read(b)));
        continue;
      case 11: // set_attr
        objects.give(read(a), read(b), true);
        break;
      case 12: // clear_attr
        objects.give(read(a), read(b), false);
        break;
      case 13: // store
        replace(machine, read(a), read(b));
        break;
      case 14: // insert_obj
        objects.insert(read(a), read(b));
        break;
      case 15: {
        // loadw
        const address = (read(a) + 2 * read(b)) & 0xffff;
        assign(machine, store, (memory[address]! << 8) | memory[address + 1]!);
        break;
      }
      case 16: // loadb
        assign(machine, store, memory[(read(a) + read(b)) & 0xffff]!);
        break;
      case 17: // get_prop
        assign(machine, store, objects.property(read(a), read(b)));
        break;
      case 18: // get_prop_addr
        assign(machine, store, objects.propertyAddress(read(a), read(b)));
        break;
      case 19: // get_next_prop
        assign(machine, store, objects.nextProperty(read(a), read(b)));
        break;
      case 20: // add
        assign(machine, store, (read(a) + read(b)) & 0xffff);
        break;
      case 21: // sub
        assign(machine, store, (read(a) - read(b)) & 0xffff);
        break;
      case 22: // mul
        assign(machine, store, Math.imul(read(a), read(b)) & 0xffff);
        break;
      case 23: // div
      case 24: {
        // mod
        const left = signed(read(a));
        const right = signed(read(b));
        if (right === 0) throw storyFault(story, instruction.address, "a division by zero");
        assign(machine, store, (op === 23 ? left / right : left % right) & 0xffff);
        break;
      }
      case 25: // call_2s
      case 26: // call_2n
      case 40: // call_1s
      case 47: // call_1n
      case 64: // call_vs
      case 76: // call_vs2
      case 89: // call_vn
      case 90: // call_vn2
        instruction = call(machine, instruction);
        continue;
      case 32: // jz
        instruction = branch(machine, instruction, read(a) === 0);
        continue;
      case 33: // get_sibling
      case 34: {
        // get_child
        const found = op === 33 ? objects.sibling(read(a)) : objects.child(read(a));
        assign(machine, store, found);
        instruction = branch(machine, instruction, found !== 0);
        continue;
      }
      case 35: // get_parent
        assign(machine, store, objects.parent(read(a)));
        break;
      case 36: // get_prop_len
        assign(machine, store, objects.propertyLength(read(a)));
        break;
      case 37: // inc
      case 38: {
        // dec
        const name = read(a);
        replace(machine, name, (peek(machine, name) + (op === 37 ? 1 : -1)) & 0xffff);
        break;
      }
      case 39: // print_addr
        print(machine, textAt(machine, read(a)));
        break;
      case 41: // remove_obj
        objects.remove(read(a));
        break;
      case 42: // print_obj
        print(machine, objects.name(read(a)));
        break;
      case 43: // ret
        instruction = leave(machine, read(a));
        continue;
      case 44: // jump
        if (a < 0) throw storyFault(story, instruction.address, "a jump to a computed address");
        instruction = jump(machine, instruction);
        continue;
      case 45: // print_paddr
        print(machine, textAt(machine, read(a) * 8));
        break;
      case 46: // load
        assign(machine, store, peek(machine, read(a)));
        break;
      case 48: // rtrue
      case 49: // rfalse
        instruction = leave(machine, 49 - op);
        continue;
      case 50: // print
        print(machine, instruction.text);
        break;
      case 51: // print_ret
        print(machine, `${instruction.text}\n`);
        instruction = leave(machine, 1);
        continue;
      case 56: // ret_popped
        instruction = leave(machine, pop(machine));
        continue;
      case 57: // catch
        leaveToInterpreter(machine);
        assign(machine, store, machine.depth);
        break;
      case 28: {
        // throw
        leaveToInterpreter(machine);
        const result = read(a);
        const depth = read(b);
        if (depth < 1 || depth > machine.depth)
          throw storyFault(story, instruction.address, "a throw to a routine that has ended");
        while (machine.depth > depth) popFrame(machine);
        instruction = leave(machine, result);
        continue;
      }
      case 59: // new_line
        print(machine, "\n");
        break;
      case 61: // verify
      case 63: // piracy
        instruction = branch(machine, instruction, true);
        continue;
      case 65: // storew
        writeWord(machine, (read(a) + 2 * read(b)) & 0xffff, read(operands[2]!));
        break;
      case 66: // storeb
        writeByte(machine, (read(a) + read(b)) & 0xffff, read(operands[2]!));
        break;
      case 67: // put_prop
        objects.setProperty(read(a), read(b), read(operands[2]!));
        break;
      case 68: // aread
        machine.waiting = instruction;
        return;
      case 69: // print_char
        printCode(machine, read(a));
        break;
      case 70: // print_num
        print(machine, String(signed(read(a))));
        break;
      case 71: // random
        assign(machine, store, drawRandom(machine, read(a)));
        break;
      case 72: // push
        push(machine, read(a));
        break;
      case 73: {
        // pull
        const name = read(a);
        replace(machine, name, pop(machine));
        break;
      }
      case 83: // output_stream
        selectStream(machine, read(a), operands.length > 1 ? read(b) : 0);
        break;
      case 87: {
        // scan_table
        const found = scanTable(machine, operands.map(read));
        assign(machine, store, found);
        instruction = branch(machine, instruction, found !== 0);
        continue;
      }
      case 88: // not
        assign(machine, store, ~read(a) & 0xffff);
        break;
      case 91: // tokenise
        tokeniseAs(machine, operands.map(read));
        break;
      case 92: // encode_text
        encodeText(machine, operands.map(read));
        break;
      case 93: // copy_table
        copyTable(machine, operands.map(read));
        break;
      case 94: // print_table
        printTable(machine, operands.map(read));
        break;
      case 95: // check_arg_count
        instruction = branch(
          machine,
          instruction,
          machine.frames[machine.depth - 1]!.arguments >= read(a),
        );
        continue;
      case 98: // log_shift
      case 99: {
        // art_shift
        const number = op === 98 ? read(a) : signed(read(a));
        const places = signed(read(b));
        assign(machine, store, (places < 0 ? number >> -places : number << places) & 0xffff);
        break;
      }
      case 107: // print_unicode
        print(machine, String.fromCharCode(read(a)));
        break;
      case 52: // nop
      case 60: // show_status
      case 27: // set_colour
      case 74: // split_window
      case 75: // set_window
      case 77: // erase_window
      case 78: // erase_line
      case 79: // set_cursor
      case 81: // set_text_style
      case 82: // buffer_mode
      case 84: // input_stream
      case 85: // sound_effect
        for (const operand of operands) read(operand);
        break;
      case 128: // back to JavaScript (`HOST`)
        return;
      default: {
        const result = unprovided(machine, instruction, operands.map(read));
        if (result !== undefined) assign(machine, store, result);
      }
    }
    instruction = instruction.next ?? follow(machine, instruction);
  }
}
