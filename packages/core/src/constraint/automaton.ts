/**
 * Deterministic automata over bytes: what an expression becomes, and the only thing that engines
 * need to know of a constraint. State 0 is the start; every state can reach an accepting one.
 */
import { UserError } from "../errors.js";
import type { Automaton, Expression } from "./expression.js";

/** A constraint that cannot be kept to, shown to the user as it is. */
export class ConstraintError extends UserError {
  override readonly name = "ConstraintError";
}

/** States of an automaton, at most. */
const MOST_STATES = 2 ** 16;
/** States while one is made. */
const MOST_PARTS = 2 ** 19;
/** Parts that its states have together, and ways between them without a byte: some seconds. */
const MOST_WORK = 2 ** 24;

/** The automaton of an expression; undefined if it has no text at all. */
export function automatonOf(expression: Expression): Automaton | undefined {
  const graph = graphOf(expression);
  const classes = classesOf(graph.edges);
  const classCount = Math.max(...classes) + 1;
  const states = new Map<string, number>();
  const members: (readonly number[])[] = [];
  const rows: Int32Array[] = [];
  let work = 0;
  const stateOf = (parts: readonly number[]): number => {
    const closed = closure(graph, parts);
    for (const part of closed) work += 1 + graph.free[part]!.length;
    if (work > MOST_WORK) throw tooLarge("too many of its parts may stand in the same place");
    const key = closed.join(" ");
    const known = states.get(key);
    if (known !== undefined) return known;
    if (members.length >= MOST_STATES) throw tooLarge();
    states.set(key, members.length);
    members.push(closed);
    return members.length - 1;
  };
  // Most bytes lead to one part, whose state need not be worked out again.
  const statesOfOne = new Int32Array(graph.edges.length).fill(-1);
  const stateOfOne = (part: number): number => {
    if (statesOfOne[part] === -1) statesOfOne[part] = stateOf([part]);
    return statesOfOne[part]!;
  };
  stateOfOne(graph.start);
  for (let state = 0; state < members.length; state++) {
    const row = new Int32Array(classCount).fill(-1);
    // A set, because as many parts may share a byte as an enum has values.
    const several = new Map<number, Set<number>>();
    for (const part of members[state]!)
      for (const [from, to, target] of graph.edges[part]!)
        for (let one = classes[from]!; one <= classes[to]!; one++)
          if (row[one] === -1) row[one] = target;
          else if (row[one] !== target) {
            const all = several.get(one);
            if (all === undefined) several.set(one, new Set([row[one]!, target]));
            else all.add(target);
          }
    row.forEach((target, one) => {
      if (target === -1) return;
      const all = several.get(one);
      row[one] = all === undefined ? stateOfOne(target) : stateOf([...all]);
    });
    rows.push(row);
  }
  const next = new Int32Array(rows.length * classCount);
  rows.forEach((row, state) => {
    next.set(row, state * classCount);
  });
  return trimmed({
    classes,
    classCount,
    next,
    accepting: Uint8Array.from(members, (parts) => (parts.includes(graph.end) ? 1 : 0)),
  });
}

const tooLarge = (why = `it needs more than ${MOST_STATES} states`): ConstraintError =>
  new ConstraintError(
    `the schema is too large: ${why}; allow fewer values, shorter texts (maxLength) and lists (maxItems), fewer optional members, or fewer tools`,
  );

/** A byte range and where it leads. */
type Edge = readonly [from: number, to: number, target: number];

/** A graph in which more than one edge may be taken, some of them without a byte. */
interface Graph {
  readonly edges: readonly (readonly Edge[])[];
  readonly free: readonly (readonly number[])[];
  readonly start: number;
  readonly end: number;
}

function graphOf(whole: Expression): Graph {
  const edges: Edge[][] = [];
  const free: number[][] = [];
  const add = (): number => {
    if (edges.length >= MOST_PARTS) throw tooLarge();
    edges.push([]);
    free.push([]);
    return edges.length - 1;
  };
  const link = (from: number, to: number): void => {
    free[from]!.push(to);
  };
  /** Adds the expression behind this part and returns where it ends. */
  const append = (from: number, expression: Expression): number => {
    switch (expression.kind) {
      case "bytes": {
        const to = add();
        for (const [first, last] of expression.ranges) edges[from]!.push([first, last, to]);
        return to;
      }
      case "sequence":
        return expression.parts.reduce(append, from);
      case "choice": {
        const to = add();
        for (const option of expression.options) link(append(from, option), to);
        return to;
      }
      case "repeat": {
        const { part, least, most } = expression;
        let at = from;
        for (let i = 0; i < least; i++) at = append(at, part);
        const to = add();
        if (most === Number.POSITIVE_INFINITY) {
          // A part of its own, because what leads here must not be repeated with it.
          const again = add();
          link(at, again);
          link(append(again, part), again);
          link(again, to);
          return to;
        }
        link(at, to);
        for (let i = least; i < most; i++) {
          at = append(at, part);
          link(at, to);
        }
        return to;
      }
      case "list": {
        // Whether an item needs a separator before it depends on whether there is one before it.
        let none: number | undefined = from;
        let some: number | undefined;
        const ends: number[] = [];
        for (const { part, required, repeated, last } of expression.items) {
          const begin = add();
          if (none !== undefined) link(none, begin);
          if (some !== undefined) link(append(some, expression.separator), begin);
          const end = add();
          link(append(begin, part), end);
          if (repeated) link(append(end, expression.separator), begin);
          if (!required && last) {
            ends.push(...[none, some].filter((one) => one !== undefined));
            none = undefined;
          } else if (!required && some !== undefined) link(some, end);
          some = end;
          if (required) none = undefined;
        }
        const to = add();
        for (const one of [...ends, none, some]) if (one !== undefined) link(one, to);
        return to;
      }
      case "automaton": {
        const { classes, classCount, next, accepting } = expression.automaton;
        const parts = Array.from(accepting, () => add());
        const to = add();
        link(from, parts[0]!);
        accepting.forEach((isEnd, state) => {
          if (isEnd) link(parts[state]!, to);
          for (const [first, last] of rangesOf(classes)) {
            const target = next[state * classCount + classes[first]!]!;
            if (target >= 0) edges[parts[state]!]!.push([first, last, parts[target]!]);
          }
        });
        return to;
      }
    }
  };
  const start = add();
  const end = append(start, whole);
  return { edges, free, start, end };
}

/** Runs of bytes of one class. */
function rangesOf(classes: Uint8Array): readonly (readonly [number, number])[] {
  const ranges: [number, number][] = [];
  for (let byte = 0; byte < 256; byte++)
    if (byte > 0 && classes[byte] === classes[byte - 1]) ranges.at(-1)![1] = byte;
    else ranges.push([byte, byte]);
  return ranges;
}

/** A class for each run of bytes that no edge tells apart. */
function classesOf(edges: Graph["edges"]): Uint8Array {
  const begins = new Uint8Array(257);
  for (const some of edges)
    for (const [first, last] of some) {
      begins[first] = 1;
      begins[last + 1] = 1;
    }
  let one = 0;
  return Uint8Array.from({ length: 256 }, (_, byte) => {
    if (byte > 0 && begins[byte]) one++;
    return one;
  });
}

function closure({ free }: Graph, parts: readonly number[]): readonly number[] {
  if (parts.length === 1 && free[parts[0]!]!.length === 0) return parts;
  const found = new Set(parts);
  for (const part of found) for (const other of free[part]!) found.add(other);
  return [...found].sort((a, b) => a - b);
}

/** Without states that lead nowhere; undefined if nothing is left. */
function trimmed(automaton: Automaton): Automaton | undefined {
  const { classes, classCount, next, accepting } = automaton;
  const live = reaching(automaton, () => true);
  if (!live[0]) return undefined;
  const numbers = new Int32Array(accepting.length).fill(-1);
  let count = 0;
  live.forEach((isLive, state) => {
    if (isLive) numbers[state] = count++;
  });
  if (count === live.length) return automaton;
  const kept = new Int32Array(count * classCount);
  numbers.forEach((number, state) => {
    for (let one = 0; number >= 0 && one < classCount; one++) {
      const to = next[state * classCount + one]!;
      kept[number * classCount + one] = to < 0 ? -1 : numbers[to]!;
    }
  });
  return {
    classes,
    classCount,
    next: kept,
    accepting: accepting.filter((_, state) => live[state]),
  };
}

/** Which states can reach an accepting one by bytes of these classes. */
export function reaching(
  { classCount, next, accepting }: Automaton,
  isUsable: (one: number) => boolean,
): Uint8Array {
  const before = Array.from(accepting, (): number[] => []);
  for (let state = 0; state < accepting.length; state++)
    for (let one = 0; one < classCount; one++) {
      const to = next[state * classCount + one]!;
      if (to >= 0 && isUsable(one)) before[to]!.push(state);
    }
  const found = Uint8Array.from(accepting);
  const open = [...found.keys()].filter((state) => found[state]);
  for (const state of open)
    for (const other of before[state]!)
      if (!found[other]) {
        found[other] = 1;
        open.push(other);
      }
  return found;
}

/** Texts of the first automaton that the second accepts too, or does not; undefined if there is none. */
export function combined(
  a: Automaton,
  b: Automaton,
  how: "both" | "first only",
): Automaton | undefined {
  return explored<readonly [number, number]>(
    [0, 0],
    ([left, right], byte) => {
      const to = a.next[left * a.classCount + a.classes[byte]!]!;
      const other = right < 0 ? -1 : b.next[right * b.classCount + b.classes[byte]!]!;
      return to < 0 || (how === "both" && other < 0) ? undefined : [to, other];
    },
    ([left, right]) => {
      const isOther = right >= 0 && b.accepting[right] === 1;
      return a.accepting[left] === 1 && isOther === (how === "both");
    },
    (byte) => a.classes[byte]! * 256 + b.classes[byte]!,
  );
}

/**
 * The automaton of a rule: where a byte leads from a state, and where a text may end. Bytes of one
 * kind lead to the same states.
 */
export function explored<S>(
  start: S,
  step: (state: S, byte: number) => S | undefined,
  isEnd: (state: S) => boolean,
  kindOf: (byte: number) => number = (byte) => byte,
): Automaton | undefined {
  const numbers = new Map<string, number>();
  const states: S[] = [];
  const kinds = Array.from({ length: 256 }, (_, byte) => kindOf(byte));
  const firstOf = kinds.map((kind) => kinds.indexOf(kind));
  const numberOf = (state: S): number => {
    const key = JSON.stringify(state);
    const known = numbers.get(key);
    if (known !== undefined) return known;
    if (states.length >= MOST_STATES) throw tooLarge();
    numbers.set(key, states.length);
    states.push(state);
    return states.length - 1;
  };
  numberOf(start);
  const rows: Int32Array[] = [];
  for (let at = 0; at < states.length; at++) {
    const row = new Int32Array(256);
    for (const [byte, first] of firstOf.entries()) {
      const to = first === byte ? step(states[at]!, byte) : undefined;
      row[byte] = first < byte ? row[first]! : to === undefined ? -1 : numberOf(to);
    }
    rows.push(row);
  }
  // Bytes that lead to the same states everywhere are one class.
  const columns = new Map<string, number>();
  const firsts: number[] = [];
  const classes = Uint8Array.from({ length: 256 }, (_, byte) => {
    const column = rows.map((row) => row[byte]!).join(" ");
    if (!columns.has(column)) {
      columns.set(column, columns.size);
      firsts.push(byte);
    }
    return columns.get(column)!;
  });
  return trimmed({
    classes,
    classCount: firsts.length,
    next: Int32Array.from(rows.flatMap((row) => firsts.map((byte) => row[byte]!))),
    accepting: Uint8Array.from(states, (state) => (isEnd(state) ? 1 : 0)),
  });
}
