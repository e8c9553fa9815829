/**
 * Steps whose sequences continue one another, as one sequence.
 *
 * With the whole history in compact prompts, a step's prompt, action and observation are, token for token,
 * the beginning of the next step's prompt. Attention is causal, so all of an episode's targets can be
 * computed in one pass over its longest sequence, with the same log-probabilities, instead of one pass for
 * each step. Nothing is approximated; where a sequence does not continue, it stays by itself.
 */
import type { TrainSequence } from "../engine/engine.js";

/** Sequences in order, with each run of continuations merged into its last; `steps` counts what went in. */
export interface MergedSequence extends TrainSequence {
  readonly steps: number;
}

/** Merges neighbours of which one begins with the other. */
export function mergeContinuations(sequences: readonly TrainSequence[]): readonly MergedSequence[] {
  const chains: TrainSequence[][] = [];
  for (const next of sequences) {
    const chain = chains.at(-1);
    if (chain !== undefined && continues(chain.at(-1)!, next)) chain.push(next);
    else chains.push([next]);
  }
  return chains.map(join);
}

/** Whether `next` begins with `last` and has no target among the tokens they share. */
function continues(last: TrainSequence, next: TrainSequence): boolean {
  const { length } = last.ids;
  if (next.ids.length <= length) return false;
  for (let i = length - 1; i >= 0; i--) {
    if (last.ids[i] !== next.ids[i] || next.targets?.[i] !== 0) return false;
  }
  return true;
}

/** A chain of continuations as its last sequence, each part with what its own step says of it. */
function join(chain: readonly TrainSequence[]): MergedSequence {
  const last = chain.at(-1)!;
  if (chain.length === 1) return { ...last, steps: 1 };
  const { length } = last.ids;
  const targets = new Uint8Array(length);
  const inputs: Record<string, Float32Array> = {};
  for (const name of new Set(chain.flatMap((sequence) => Object.keys(sequence.inputs))))
    inputs[name] = new Float32Array(length);
  let start = 0;
  for (const sequence of chain) {
    const end = sequence.ids.length;
    copy(sequence.targets, targets, start, end);
    for (const [name, values] of Object.entries(sequence.inputs))
      copy(values, inputs[name]!, start, end);
    start = end;
  }
  return { ids: last.ids, targets, inputs, steps: chain.length };
}

function copy(
  from: ArrayLike<number> | undefined,
  to: Uint8Array | Float32Array,
  start: number,
  end: number,
): void {
  if (from === undefined) return;
  for (let i = start; i < end; i++) to[i] = from[i]!;
}
