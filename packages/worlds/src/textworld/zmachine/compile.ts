/** Compiles a routine to a JavaScript function of the number of arguments and the arguments. */
import { endsPath, type Flow, flowFrom, jumpsTo, variablesOf } from "./flow.js";
import type { Instruction } from "./instruction.js";
import type { Routine } from "./routine.js";
import { enter, nestLoops, type Range, rangeOf, routeTo } from "./structure.js";
import { type Context, MOST_PARAMETERS, translate } from "./translate.js";

/** Labels inside one another that JavaScript engines read without trouble. */
const MOST_LABELS = 500;

/** The source of a routine's function; undefined if it is left to the interpreter. */
export function compileRoutine(
  routine: Routine,
  instructionAt: (address: number) => Instruction,
  context: Omit<Context, "goto" | "depth">,
): string | undefined {
  const flow = flowFrom(routine.start, instructionAt);
  if (flow === undefined || flow.blocks.length > MOST_LABELS) return undefined;
  // One that the routine does not have is a fault, which the interpreter tells.
  const missing = (variable: number): boolean => variable > routine.locals && variable < 16;
  if (flow.blocks.some(({ instructions }) => instructions.flatMap(variablesOf).some(missing)))
    return undefined;
  const body = structured(flow, context);
  const parameters = Math.min(routine.locals, MOST_PARAMETERS);
  const names = (prefix: string, from: number, to: number): readonly string[] =>
    Array.from({ length: Math.max(0, to - from) }, (_, at) => `${prefix}${from + at}`);
  const own = [
    ...names("l", parameters + 1, routine.locals + 1),
    ...names("s", 0, flow.deepest),
    ...["t", "u", "v", "e"],
  ];
  return `function r${routine.address.toString(16)}(${["n", ...names("l", 1, parameters + 1)]}){let ${own.map((name) => `${name}=0`)};if(--fuel[0]<0)bail();${body}bail();}`;
}

interface Writer {
  readonly flow: Flow;
  readonly root: Range;
  /** Blocks and loops that something jumps to, by head. */
  readonly labelled: ReadonlySet<number>;
  /** Blocks inside loops that are entered from outside. */
  readonly entries: ReadonlySet<number>;
  readonly context: Omit<Context, "goto" | "depth">;
}

function structured(flow: Flow, context: Omit<Context, "goto" | "depth">): string {
  const jumps = flow.blocks.flatMap(({ instructions }, from) =>
    jumpsTo(instructions.at(-1)!).map((address) => [from, flow.blockAt.get(address)!] as const),
  );
  const root = nestLoops(flow.blocks.length, jumps);
  const labelled = new Set<number>();
  const entries = new Set<number>();
  for (const [from, to] of jumps) {
    const route = routeTo(root, from, to);
    if (!route.back) labelled.add(route.head);
    // On the way in, every loop's head sends it on.
    for (let { entry, head } = route; entry !== 0; ) {
      entries.add(entry);
      ({ entry, head } = enter(rangeOf(root, head), entry));
      labelled.add(head);
    }
  }
  return writeRange(root, { flow, root, labelled, entries, context });
}

function writeRange(range: Range, writer: Writer): string {
  const { flow, labelled, entries } = writer;
  const items: (number | Range)[] = [];
  for (let block = Math.max(0, range.head); block <= range.last; ) {
    const loop = range.loops.find(({ head }) => head === block);
    items.push(loop ?? block);
    block = (loop?.last ?? block) + 1;
  }
  const headOf = (item: number | Range): number => (typeof item === "number" ? item : item.head);
  const labels = items.map(headOf).filter((head) => head !== range.head && labelled.has(head));
  let code = labels
    .toReversed()
    .map((head) => `L${head}:{`)
    .join("");
  for (const entry of entries) {
    if (range.head < 0 || entry <= range.head || entry > range.last) continue;
    const route = enter(range, entry);
    code += `if(e===${entry}){${route.entry === 0 ? "e=0;" : ""}break L${route.head};}`;
  }
  for (const item of items) {
    if (labels.includes(headOf(item))) code += "}";
    code +=
      typeof item === "number"
        ? writeBlock(item, flow, writer)
        : `C${item.head}:for(;;){if(--fuel[0]<0)bail();${writeRange(item, writer)}break;}`;
  }
  return code;
}

function writeBlock(block: number, flow: Flow, { root, context }: Writer): string {
  const { instructions, depth } = flow.blocks[block]!;
  const goto = (address: number): string => {
    const { entry, head, back } = routeTo(root, block, flow.blockAt.get(address)!);
    return `${entry === 0 ? "" : `e=${entry};`}${back ? `continue C${head};` : `break L${head};`}`;
  };
  const now: Context = { ...context, goto, depth };
  const code = instructions.map((instruction) => translate(instruction, now)).join("\n");
  const last = instructions.at(-1)!;
  // The next block in order must be the one that follows.
  return endsPath(last) || flow.blockAt.get(last.end) === block + 1 ? code : `${code}bail();`;
}
