/** The masks of a sequence's tokens: those of the answers in it that were held to something. */
import type { Constraint } from "../text/constraint.js";
import { ConstraintError } from "./automaton.js";
import { OUTSIDE, type TokenMasks } from "./token-masks.js";

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
