/** Answers that masks allow, drawn at random, for tests. */
import { createRandom } from "../random.js";
import type { Constraint } from "../text/constraint.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { constraintAutomaton } from "./constraint.js";
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
  const left = stepsLeft(constraint);
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
function stepsLeft(constraint: Constraint): readonly number[] {
  const { accepting, next, classCount } = constraintAutomaton(constraint);
  const left = Array.from(accepting, (isEnd) => (isEnd ? 0 : Number.POSITIVE_INFINITY));
  for (let changed = true; changed; ) {
    changed = false;
    for (let state = left.length - 1; state >= 0; state--)
      for (let one = 0; one < classCount; one++) {
        const to = next[state * classCount + one]!;
        if (to < 0 || left[to]! + 1 >= left[state]!) continue;
        left[state] = left[to]! + 1;
        changed = true;
      }
  }
  return left;
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
