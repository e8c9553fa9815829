/** Instructions, decoded once: the interpreter runs them, the compiler translates them. */
import { type Story, storyFault } from "./story.js";
import { decodeText } from "./text.js";

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

/** One instruction. An operand that is 0 or more is a constant; a negative one, `~v`, is variable v. */
export interface Instruction {
  readonly address: number;
  /** Its name in the standard; of none that the standard has, its code. */
  readonly op: string;
  /** The place of its name among `OPCODES`. */
  readonly code: number;
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

/** Where the codes of each class begin. */
const OP1 = 32;
const OP0 = 48;
const VAR = 64;
const EXT = 96;

interface Opcode {
  readonly name: string;
  readonly stores: boolean;
  readonly branches: boolean;
  /** How many operands it needs at least. */
  readonly needed: number;
}

/** The instructions of a class: `<` stores a result, `?` branches, `/n` needs n operands. */
const classOf = (size: number, needed: number, text: string): readonly (Opcode | undefined)[] => {
  const words = text.trim().split(/\s+/);
  return Array.from({ length: size }, (_, code) => {
    const [, name, stores, branches, own] =
      /^(\w+)(<)?(\?)?(?:\/(\d))?$/.exec(words[code] ?? "-") ?? [];
    return name === undefined
      ? undefined
      : {
          name,
          stores: stores !== undefined,
          branches: branches !== undefined,
          needed: own === undefined ? needed : Number(own),
        };
  });
};

/** The instructions of version 8, by the standard's classes (section 14): 2OP, 1OP, 0OP, VAR, EXT. */
export const OPCODES: readonly (Opcode | undefined)[] = [
  ...classOf(
    32,
    2,
    `- je?/1 jl? jg? dec_chk? inc_chk? jin? test? or< and< test_attr? set_attr clear_attr store
    insert_obj loadw< loadb< get_prop< get_prop_addr< get_next_prop< add< sub< mul< div< mod<
    call_2s< call_2n set_colour throw`,
  ),
  ...classOf(
    16,
    1,
    `jz? get_sibling<? get_child<? get_parent< get_prop_len< inc dec print_addr call_1s< remove_obj
    print_obj ret jump print_paddr load< call_1n`,
  ),
  ...classOf(
    16,
    0,
    `rtrue rfalse print print_ret nop - - restart ret_popped catch< quit new_line show_status
    verify? - piracy?`,
  ),
  ...classOf(
    32,
    1,
    `call_vs< storew/3 storeb/3 put_prop/3 aread< print_char print_num random< push pull
    split_window set_window call_vs2< erase_window erase_line set_cursor/2 get_cursor set_text_style
    buffer_mode output_stream input_stream sound_effect/0 read_char< scan_table<?/3 not< call_vn
    call_vn2 tokenise/2 encode_text/4 copy_table/3 print_table/2 check_arg_count?`,
  ),
  ...classOf(
    32,
    0,
    `save< restore< log_shift</2 art_shift</2 set_font</1 - - - - save_undo< restore_undo<
    print_unicode/1 check_unicode</1`,
  ),
];

/** Stands for the caller of a routine that JavaScript called: it ends the interpreter's run. */
export const HOST: Instruction = {
  address: 0,
  op: "host",
  code: -1,
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

/** Instructions whose first operand is the number of a variable. */
export const NAMES_VARIABLE: ReadonlySet<string> = new Set(
  "dec_chk inc_chk store inc dec load pull".split(" "),
);

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
  let code: number;
  if (first === 0xbe) {
    code = EXT + (byte() & 31);
    listed([byte()]);
  } else if (first >= 0xe0) {
    code = VAR + (first & 31);
    const isLong = ["call_vs2", "call_vn2"].includes(OPCODES[code]?.name ?? "");
    listed(isLong ? [byte(), byte()] : [byte()]);
  } else if (first >= 0xc0) {
    code = first & 31;
    listed([byte()]);
  } else if (first >= 0xb0) code = OP0 + (first & 15);
  else if (first >= 0x80) {
    code = OP1 + (first & 15);
    operand((first >> 4) & 3);
  } else {
    code = first & 31;
    operand(first & 0x40 ? 2 : SMALL);
    operand(first & 0x20 ? 2 : SMALL);
  }
  const unknown: Opcode = { name: String(code), stores: false, branches: false, needed: 0 };
  const { name: op, stores, branches, needed } = OPCODES[code] ?? unknown;
  if (operands.length < needed)
    throw storyFault(story, address, `${op} has ${operands.length} operands of ${needed}`);
  const store = stores ? byte() : -1;
  let branchIf = -1;
  let target = 0;
  if (branches) {
    const how = byte();
    branchIf = how >> 7;
    const offset = how & 0x40 ? how & 63 : ((((how & 63) << 8) | byte()) << 18) >> 18;
    target = offset === 0 || offset === 1 ? offset : at + offset - 2;
  }
  if (op === "jump" && operands[0]! >= 0) target = at + ((operands[0]! << 16) >> 16) - 2;
  let text = "";
  if (op === "print" || op === "print_ret") {
    const decoded = decodeText(story, bytes, at);
    text = decoded.text;
    at = decoded.end;
  }
  const [a = 0, b = 0] = operands;
  const links = { next: undefined, jump: undefined };
  return { address, op, code, operands, a, b, store, branchIf, target, text, end: at, ...links };
}
