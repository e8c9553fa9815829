/** Which tokens may come next under a constraint. */

import type { Constraint } from "../text/constraint.js";
import { ConstraintError, reaching } from "./automaton.js";
import { constraintAutomaton, constraintKey } from "./constraint.js";
import type { Automaton } from "./expression.js";
import type { Vocabulary } from "./vocabulary.js";

/** The state after an answer has ended: nothing is constrained any more. */
export const ENDED = -1;
/** The state after a token that was not allowed. */
export const OUTSIDE = -2;

/** The masks of a constraint; the first state is 0. */
export interface TokenMasks {
  /** The state after a token. */
  next(state: number, token: number): number;
  /** 1 for each token that is allowed, by id; the same array for the same state. */
  allowed(state: number): Uint8Array;
}

/** The state after these tokens of an answer. */
export function stateAfter(masks: TokenMasks, tokens: readonly number[]): number {
  return tokens.reduce((state, token) => masks.next(state, token), 0);
}

/** Bytes of masks that are kept of one constraint. */
const MOST_BYTES = 2 ** 26;
/** Constraints whose masks are kept. */
const KEPT = 16;

/** Masks for a model of this many tokens. */
export function createMasks(
  constraint: Constraint,
  vocabulary: Vocabulary,
  vocabularySize: number,
): TokenMasks {
  const { ids, starts, bytes, shared, endIds } = vocabulary;
  const automaton = constraintAutomaton(constraint);
  const { classes, classCount, next, accepting } = automaton;
  const live = liveStates(automaton, vocabulary);
  const rowOf = new Int32Array(vocabularySize).fill(-1);
  ids.forEach((id, row) => {
    rowOf[id] = row;
  });
  const ends = new Set(endIds);
  const everything = new Uint8Array(vocabularySize).fill(1);
  const masks = new Map<number, Uint8Array>();
  const most = Math.max(8, Math.floor(MOST_BYTES / vocabularySize));
  // The states on the way to the token before, by how many bytes were read.
  const path = new Int32Array(
    1 + starts.reduce((longest, end, i) => Math.max(longest, end - (starts[i - 1] ?? 0)), 0),
  );

  const maskOf = (state: number): Uint8Array => {
    const mask = new Uint8Array(vocabularySize);
    if (accepting[state]) for (const id of endIds) mask[id] = 1;
    path[0] = state;
    let depth = 0;
    for (let row = 0; row < ids.length; row++) {
      const same = shared[row]!;
      // It begins like a token that failed.
      if (same > depth) continue;
      const [start, end] = [starts[row]!, starts[row + 1]!];
      depth = same;
      let at = path[depth]!;
      for (let byte = start + same; byte < end; byte++) {
        at = next[at * classCount + classes[bytes[byte]!]!]!;
        if (at < 0) break;
        depth++;
        path[depth] = at;
      }
      if (at >= 0 && live[at]) mask[ids[row]!] = 1;
    }
    return mask;
  };

  return {
    next(state, token) {
      if (state < 0) return state;
      if (ends.has(token)) return accepting[state] ? ENDED : OUTSIDE;
      const row = rowOf[token] ?? -1;
      if (row < 0) return OUTSIDE;
      let at = state;
      for (let byte = starts[row]!; byte < starts[row + 1]!; byte++) {
        at = next[at * classCount + classes[bytes[byte]!]!]!;
        if (at < 0) return OUTSIDE;
      }
      return live[at] ? at : OUTSIDE;
    },
    allowed(state) {
      if (state < 0) return everything;
      const mask = masks.get(state) ?? maskOf(state);
      masks.delete(state);
      masks.set(state, mask);
      if (masks.size > most) masks.delete(masks.keys().next().value!);
      return mask;
    },
  };
}

/** States from which the tokenizer can write an answer to its end: bytes that are tokens lead there. */
function liveStates(automaton: Automaton, { ids, starts, bytes }: Vocabulary): Uint8Array {
  const usable = new Uint8Array(automaton.classCount);
  for (let row = 0; row < ids.length; row++)
    if (starts[row + 1]! - starts[row]! === 1) usable[automaton.classes[bytes[starts[row]!]!]!] = 1;
  const live = reaching(automaton, (one) => usable[one] === 1);
  if (live[0]) return live;
  throw new ConstraintError(
    "the tokenizer cannot write what the schema asks for: it lacks tokens for single bytes",
  );
}

/** Masks by constraint, made when they are needed first. */
export function keptMasks(
  vocabulary: Vocabulary,
  vocabularySize: number,
): (constraint: Constraint) => TokenMasks {
  const kept = new Map<string, TokenMasks>();
  return (constraint) => {
    const key = constraintKey(constraint);
    const masks = kept.get(key) ?? createMasks(constraint, vocabulary, vocabularySize);
    kept.delete(key);
    kept.set(key, masks);
    if (kept.size > KEPT) kept.delete(kept.keys().next().value!);
    return masks;
  };
}

/** What is needed of a sequence. */
interface Constrained {
  readonly ids: ArrayLike<number>;
  readonly constraints?:
    | readonly { readonly start: number; readonly end: number; readonly constraint: Constraint }[]
    | undefined;
}

/** The mask of each token that was held to something, by its place. */
export function targetMasks(
  { ids, constraints = [] }: Constrained,
  masksOf: (constraint: Constraint) => TokenMasks,
): ReadonlyMap<number, Uint8Array> {
  const found = new Map<number, Uint8Array>();
  for (const { start, end, constraint } of constraints) {
    const masks = masksOf(constraint);
    let state = 0;
    for (let at = start; at < end; at++) {
      found.set(at, masks.allowed(state));
      state = masks.next(state, ids[at]!);
      if (state === OUTSIDE)
        throw new ConstraintError(
          `token ${at} (${ids[at]}) is not allowed by what its answer was held to; was it sampled with another tokenizer, or changed?`,
        );
    }
  }
  return found;
}
