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
export interface Route {
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
