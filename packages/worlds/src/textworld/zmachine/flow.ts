/** The control flow of a routine: its instructions, its blocks, and how deep the stack is at each. */
import { type Instruction, NAMES_VARIABLE } from "./instruction.js";

/** Instructions that run one after the other; only the last one goes elsewhere. */
interface Block {
  readonly instructions: readonly Instruction[];
  /** How many values of its own the routine has on the stack when the block begins. */
  readonly depth: number;
}

/** A routine's blocks in order of address; a block is named by its place in the list. */
export interface Flow {
  readonly blocks: readonly Block[];
  readonly blockAt: ReadonlyMap<number, number>;
  /** The most values that are on the stack at once. */
  readonly deepest: number;
}

/** A routine with more is left to the interpreter. */
const MOST_INSTRUCTIONS = 4000;

/** The flow from an address on; undefined if it cannot be known before the routine runs. */
export function flowFrom(
  start: number,
  instructionAt: (address: number) => Instruction,
): Flow | undefined {
  const depths = new Map<number, number>([[start, 0]]);
  const leaders = new Set([start]);
  const found = new Map<number, Instruction>();
  const open = [start];
  let deepest = 0;
  for (let address = open.pop(); address !== undefined; address = open.pop()) {
    if (found.has(address)) continue;
    if (found.size > MOST_INSTRUCTIONS) return undefined;
    const instruction = instructionAt(address);
    found.set(address, instruction);
    const effect = stackEffect(instruction);
    const before = depths.get(address)!;
    if (effect === undefined || before < effect.taken) return undefined;
    const after = before - effect.taken + effect.left;
    deepest = Math.max(deepest, after);
    const jumps = jumpsTo(instruction);
    for (const next of [...jumps, ...(endsPath(instruction) ? [] : [instruction.end])]) {
      const known = depths.get(next);
      // The stack would be deeper or not depending on the way here.
      if (known !== undefined && known !== after) return undefined;
      depths.set(next, after);
      open.push(next);
    }
    for (const target of jumps) leaders.add(target);
    if (jumps.length > 0) leaders.add(instruction.end);
  }
  return { ...cut(found, leaders, depths), deepest };
}

function cut(
  found: ReadonlyMap<number, Instruction>,
  leaders: ReadonlySet<number>,
  depths: ReadonlyMap<number, number>,
): Omit<Flow, "deepest"> {
  const blocks: { instructions: Instruction[]; depth: number }[] = [];
  const blockAt = new Map<number, number>();
  let previous: Instruction | undefined;
  for (const address of [...found.keys()].sort((left, right) => left - right)) {
    if (
      previous === undefined ||
      previous.end !== address ||
      leaders.has(address) ||
      endsPath(previous)
    ) {
      blockAt.set(address, blocks.length);
      blocks.push({ instructions: [], depth: depths.get(address)! });
    }
    previous = found.get(address)!;
    blocks.at(-1)!.instructions.push(previous);
  }
  return { blocks, blockAt };
}

/** The addresses that an instruction may go to, other than the next one. */
export function jumpsTo({ op, branchIf, target }: Instruction): readonly number[] {
  return op === "jump" || (branchIf >= 0 && target > 1) ? [target] : [];
}

const ENDS: ReadonlySet<string> = new Set(
  "throw ret jump rtrue rfalse print_ret restart ret_popped quit".split(" "),
);

/** Whether the next instruction is never reached from this one. */
export function endsPath({ op }: Instruction): boolean {
  return ENDS.has(op);
}

/** The variables that an instruction reads or changes. */
export function variablesOf({ op, a, operands, store }: Instruction): readonly number[] {
  const read = operands.filter((operand) => operand < 0).map((operand) => ~operand);
  return [...read, store, ...(NAMES_VARIABLE.has(op) && a >= 0 ? [a] : [])];
}

/** How many values an instruction takes from the stack and leaves on it; undefined if that varies. */
function stackEffect({
  op,
  a,
  operands,
  store,
}: Instruction): { readonly taken: number; readonly left: number } | undefined {
  // A variable that is only known at run time may be the stack.
  if (NAMES_VARIABLE.has(op) && a < 0) return undefined;
  if (op === "jump" && a < 0) return undefined;
  let taken = operands.filter((operand) => operand === ~0).length;
  if (op === "ret_popped" || op === "pull") taken++;
  let left = store === 0 || op === "push" ? 1 : 0;
  // The top of the stack in place: it must be there, and stays.
  if (NAMES_VARIABLE.has(op) && a === 0) {
    taken++;
    left++;
  }
  return { taken, left };
}

/**
 * Gives the blocks of a routine the shape of a structured program: loops, and labelled blocks to
 * leave forwards. Blocks keep their order. A loop is a range of blocks that ends with a jump back to
 * its first; a jump from outside into its middle enters at its head, with the variable `e` saying
 * where to go on.
 */

/** The blocks from `head` to `last`, which repeat. */
interface Loop {
  readonly head: number;
  readonly last: number;
}

/** How to get from one block to another. */
interface Route {
  /** What `e` must say first: the block to go on at; 0 if the head itself is meant. */
  readonly entry: number;
  /** The head of the block or loop to go to. */
  readonly head: number;
  /** Whether that is the loop both are in, so that it is continued, not left forwards. */
  readonly back: boolean;
}

/** A range of blocks: the whole routine, or a loop without what is around it. */
export interface Range extends Loop {
  readonly parent: Range | undefined;
  readonly loops: readonly Range[];
}

/** The loops of a routine with so many blocks and these jumps between them, nested. */
export function nestLoops(
  blocks: number,
  jumps: readonly (readonly [from: number, to: number])[],
): Range {
  const lasts = new Map<number, number>();
  for (const [from, to] of jumps) if (to <= from) lasts.set(to, Math.max(from, lasts.get(to) ?? 0));
  let loops = [...lasts].map(([head, last]): Loop => ({ head, last }));
  // Loops that overlap without nesting are made to nest.
  for (let changed = true; changed; ) {
    changed = false;
    loops = loops.map((loop) => {
      const over = loops.find(
        ({ head, last }) => head > loop.head && head <= loop.last && last > loop.last,
      );
      if (over === undefined) return loop;
      changed = true;
      return { ...loop, last: over.last };
    });
  }
  loops.sort((left, right) => left.head - right.head || right.last - left.last);
  const root = { head: -1, last: blocks - 1, parent: undefined, loops: [] as Range[] };
  type Open = Range & { readonly loops: Range[] };
  let around: Open = root;
  for (const loop of loops) {
    while (around.parent !== undefined && loop.head > around.last) around = around.parent as Open;
    const inner: Open = { ...loop, parent: around, loops: [] };
    around.loops.push(inner);
    around = inner;
  }
  return root;
}

function holds({ head, last }: Loop, block: number): boolean {
  return head <= block && block <= last;
}

/** The smallest range around a block. */
export function rangeOf(root: Range, block: number): Range {
  let range = root;
  for (;;) {
    const inner = range.loops.find((loop) => holds(loop, block));
    if (inner === undefined) return range;
    range = inner;
  }
}

/** How to jump from a block to another. */
export function routeTo(root: Range, from: number, to: number): Route {
  let range = rangeOf(root, from);
  while (range.parent !== undefined && !holds(range, to)) range = range.parent;
  if (to === range.head) return { entry: 0, head: to, back: true };
  return enter(range, to);
}

/** How to go on from the head of a range to a block in it. */
export function enter(range: Range, to: number): Route {
  const inner = range.loops.find((loop) => holds(loop, to));
  const head = inner?.head ?? to;
  return { entry: head === to ? 0 : to, head, back: false };
}
