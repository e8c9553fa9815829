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
  const merged: MergedSequence[] = [];
  for (const next of sequences) {
    const last = merged.at(-1);
    if (last !== undefined && continues(last, next)) merged[merged.length - 1] = join(last, next);
    else merged.push({ ...next, steps: 1 });
  }
  return merged;
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

function join(last: MergedSequence, next: TrainSequence): MergedSequence {
  const targets = Uint8Array.from(next.targets ?? []);
  for (let i = 0; i < last.ids.length; i++) if (last.targets?.[i]) targets[i] = 1;
  const inputs: Record<string, Float32Array> = {};
  for (const name of new Set([...Object.keys(last.inputs), ...Object.keys(next.inputs)])) {
    const values = new Float32Array(next.ids.length);
    values.set(Array.from(next.inputs[name] ?? []));
    // Inputs are 0 on tokens they say nothing about, so the shared part comes from the earlier step.
    values.set(Array.from(last.inputs[name] ?? []));
    inputs[name] = values;
  }
  return { ids: next.ids, targets, inputs, steps: last.steps + 1 };
}
