/** Answers that masks allow, drawn at random, for tests. */
import { createRandom } from "../random.js";
import type { Constraint } from "../text/constraint.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { constraintAutomaton } from "./constraint.js";
import type { Automaton } from "./expression.js";
import { createMasks, ENDED } from "./token-masks.js";
import { vocabularyOf } from "./vocabulary.js";

/** A tokenizer of bytes and some pieces of JSON. */
export const jsonTokenizer: Tokenizer = buildTokenizer(
  ['{"name": "x", "arguments": {"a": 1.5, "b": [true, false, null]}}', "<tool_call>\n</tool_call>"],
  { chat: true },
);

/** Draws answers from what is allowed; after some tokens by the shortest way to their end. */
export function drawer(
  constraint: Constraint,
  tokenizer = jsonTokenizer,
): (seed: number) => string {
  const masks = createMasks(constraint, vocabularyOf(tokenizer), tokenizer.vocabularySize);
  const left = stepsLeft(constraintAutomaton(constraint));
  return (seed) => {
    const random = createRandom(seed);
    const tokens: number[] = [];
    const patience = 10 + Math.floor(random.next() * 40);
    for (let state = 0; ; ) {
      const allowed = [...masks.allowed(state).entries()].flatMap(([id, may]) => (may ? [id] : []));
      if (allowed.length === 0) throw new Error(`nothing may follow ${tokenizer.decode(tokens)}`);
      const distance = (id: number): number => left[masks.next(state, id)] ?? -1;
      const token =
        tokens.length > patience
          ? allowed.reduce((best, id) => (distance(id) < distance(best) ? id : best))
          : allowed[Math.floor(random.next() * allowed.length)]!;
      state = masks.next(state, token);
      if (state === ENDED) return tokenizer.decode(tokens);
      tokens.push(token);
    }
  };
}

/** How many bytes each state is from an end. */
function stepsLeft({ accepting, next, classCount }: Automaton): readonly number[] {
  const before = Array.from(accepting, (): number[] => []);
  next.forEach((to, at) => {
    if (to >= 0) before[to]!.push(Math.floor(at / classCount));
  });
  const left = Array.from(accepting, (isEnd) => (isEnd ? 0 : Number.POSITIVE_INFINITY));
  const open = [...left.keys()].filter((state) => left[state] === 0);
  for (const state of open)
    for (const other of before[state]!)
      if (left[other] === Number.POSITIVE_INFINITY) {
        left[other] = left[state]! + 1;
        open.push(other);
      }
  return left;
}

/** Draws answers byte by byte, without a tokenizer; after some by the shortest way to their end. */
export function byteDrawer(constraint: Constraint): (seed: number) => string {
  const automaton = constraintAutomaton(constraint);
  const { accepting, next, classes, classCount } = automaton;
  const left = stepsLeft(automaton);
  const bytesOf = Array.from({ length: classCount }, (_, one) =>
    [...classes.keys()].filter((byte) => classes[byte] === one),
  );
  return (seed) => {
    const random = createRandom(seed);
    const bytes: number[] = [];
    const patience = Math.floor(random.next() * 60);
    for (let state = 0; ; ) {
      const to = (one: number): number => next[state * classCount + one]!;
      const ways = [...bytesOf.keys()].filter((one) => to(one) >= 0);
      const isLate = bytes.length > patience;
      if (accepting[state] && (isLate || random.int(ways.length + 1) === 0)) break;
      const one = isLate
        ? ways.reduce((best, way) => (left[to(way)]! < left[to(best)]! ? way : best))
        : random.pick(ways);
      bytes.push(random.pick(bytesOf[one]!));
      state = to(one);
    }
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes));
  };
}

/** Whether a text is one of the answers. */
export function isAllowed(constraint: Constraint, text: string): boolean {
  const { classes, classCount, next, accepting } = constraintAutomaton(constraint);
  let state = 0;
  for (const byte of Buffer.from(text)) {
    state = next[state * classCount + classes[byte]!]!;
    if (state < 0) return false;
  }
  return accepting[state] === 1;
}
