/** Instructions, decoded once: the interpreter runs them, the compiler translates them. */
import { storyFault } from "./fault.js";
import type { Story } from "./story.js";
import { decodeText } from "./text.js";

/**
 * One instruction. `op` is the opcode's number in its class plus the class: 2OP + n, OP1 + n, and so
 * on. An operand that is 0 or more is a constant; a negative one, `~v`, is variable v.
 */
export interface Instruction {
  readonly address: number;
  readonly op: number;
  readonly operands: readonly number[];
  /** The first operands again, or 0: reading a field is faster than reading a list. */
  readonly a: number;
  readonly b: number;
  /** The variable that takes the result, or -1. */
  readonly store: number;
  /** Whether it branches if its condition holds (1), does not hold (0), or not at all (-1). */
  readonly branchIf: number;
  /** Where a branch goes: an address, or 0 and 1, which return that from the routine. */
  readonly target: number;
  /** The text of a print instruction. */
  readonly text: string;
  /** The address of the next instruction. */
  readonly end: number;
  /** Links that the interpreter sets when it first follows them. */
  next: Instruction | undefined;
  jump: Instruction | undefined;
}

/** Classes of opcodes. */
const OP1 = 32;
const OP0 = 48;
const VAR = 64;
const EXT = 96;

/**
 * Stands for the caller of a routine that JavaScript called: it ends the interpreter's run. Its number is one that no
 * story can spell.
 */
export const HOST: Instruction = {
  address: 0,
  op: EXT + 32,
  operands: [],
  a: 0,
  b: 0,
  store: -1,
  branchIf: -1,
  target: 0,
  text: "",
  end: 0,
  next: undefined,
  jump: undefined,
};

const BRANCHES = new Set([
  ...[1, 2, 3, 4, 5, 6, 7, 10],
  ...[OP1, OP1 + 1, OP1 + 2, OP0 + 13, OP0 + 15, VAR + 23, VAR + 31],
]);
const STORES = new Set([
  ...[8, 9, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25],
  ...[OP1 + 1, OP1 + 2, OP1 + 3, OP1 + 4, OP1 + 8, OP1 + 14, OP0 + 9],
  ...[VAR, VAR + 4, VAR + 7, VAR + 12, VAR + 22, VAR + 23, VAR + 24],
  ...[EXT, EXT + 1, EXT + 2, EXT + 3, EXT + 4, EXT + 9, EXT + 10, EXT + 12],
]);
/** How many operands an instruction needs at least, where that is not 0 (VAR and EXT only). */
const NEEDED: ReadonlyMap<number, number> = new Map([
  ...[0, 5, 6, 7, 8, 9, 10, 11, 12, 15, 17, 18, 19, 20, 22, 24, 25, 26, 31].map(
    (n) => [VAR + n, n === 15 ? 2 : 1] as const,
  ),
  ...[1, 2, 3, 23, 29].map((n) => [VAR + n, 3] as const),
  ...[4, 27, 30].map((n) => [VAR + n, n === 4 ? 1 : 2] as const),
  [VAR + 28, 4],
  ...[2, 3].map((n) => [EXT + n, 2] as const),
  ...[4, 11, 12].map((n) => [EXT + n, 1] as const),
]);

const LARGE = 0;
const SMALL = 1;
const OMITTED = 3;

/** Decodes the instruction at an address, which must be in the part of memory that never changes. */
export function decodeInstruction(story: Story, address: number): Instruction {
  const { bytes, size } = story;
  if (address < story.staticMark || address >= size)
    throw storyFault(story, address, "the program runs outside the memory for programs");
  let at = address;
  const byte = (): number => {
    if (at >= size) throw storyFault(story, address, "an instruction is cut by the end of memory");
    return bytes[at++]!;
  };
  const operands: number[] = [];
  const operand = (kind: number): void => {
    if (kind === LARGE) operands.push((byte() << 8) | byte());
    else if (kind === SMALL) operands.push(byte());
    else if (kind !== OMITTED) operands.push(~byte());
  };
  const listed = (kinds: readonly number[]): void => {
    for (const four of kinds) {
      for (let bits = 6; bits >= 0; bits -= 2) operand((four >> bits) & 3);
    }
  };
  const first = byte();
  let op: number;
  if (first === 0xbe) {
    op = EXT + (byte() & 31);
    listed([byte()]);
  } else if (first >= 0xe0) {
    op = VAR + (first & 31);
    listed(op === VAR + 12 || op === VAR + 26 ? [byte(), byte()] : [byte()]);
  } else if (first >= 0xc0) {
    op = first & 31;
    listed([byte()]);
  } else if (first >= 0xb0) op = OP0 + (first & 15);
  else if (first >= 0x80) {
    op = OP1 + (first & 15);
    operand((first >> 4) & 3);
  } else {
    op = first & 31;
    operand(first & 0x40 ? 2 : SMALL);
    operand(first & 0x20 ? 2 : SMALL);
  }
  const needed = op < OP1 ? (op === 1 || op === 28 ? 1 : 2) : (NEEDED.get(op) ?? 0);
  if (operands.length < needed)
    throw storyFault(story, address, `an instruction has ${operands.length} operands of ${needed}`);
  const store = STORES.has(op) ? byte() : -1;
  let branchIf = -1;
  let target = 0;
  if (BRANCHES.has(op)) {
    const how = byte();
    branchIf = how >> 7;
    const offset = how & 0x40 ? how & 63 : ((((how & 63) << 8) | byte()) << 18) >> 18;
    target = offset === 0 || offset === 1 ? offset : at + offset - 2;
  }
  if (op === OP1 + 12 && operands[0]! >= 0) target = at + ((operands[0]! << 16) >> 16) - 2;
  let text = "";
  if (op === OP0 + 2 || op === OP0 + 3) {
    const decoded = decodeText(story, bytes, at);
    text = decoded.text;
    at = decoded.end;
  }
  const [a = 0, b = 0] = operands;
  const links = { next: undefined, jump: undefined };
  return { address, op, operands, a, b, store, branchIf, target, text, end: at, ...links };
}
