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
