/**
 * Steps whose sequences continue one another, as one sequence.
 *
 * With the whole history in compact prompts, a step's prompt, action and observation are, token for token,
 * the beginning of the next step's prompt. Attention is causal, so all of an episode's targets can be
 * computed in one pass over its longest sequence, with the same log-probabilities, instead of one pass for
 * each step. Nothing is approximated; where a sequence does not continue, it stays by itself.
 */
import type { TrainSequence } from "../engine/engine.js";

/** One step's tokens, with targets and inputs for those from `start` on: what comes before is only read. */
export interface StepSequence {
  readonly ids: readonly number[];
  readonly start: number;
  readonly targets: Uint8Array;
  readonly inputs: Readonly<Record<string, Float32Array>>;
  /** Absent: 1 throughout. */
  readonly temperatures?: Float32Array;
}

/** A sequence to train on; `steps` counts what went in. */
export interface MergedSequence extends TrainSequence {
  readonly steps: number;
}

/** Sequences in order, with each run of continuations merged into its last. */
export function mergeContinuations(steps: readonly StepSequence[]): readonly MergedSequence[] {
  const chains: StepSequence[][] = [];
  for (const next of steps) {
    const chain = chains.at(-1);
    if (chain !== undefined && continues(chain.at(-1)!, next)) chain.push(next);
    else chains.push([next]);
  }
  return chains.map(join);
}

/** Whether `next` begins with `last` and only reads the tokens they share. */
function continues({ ids }: StepSequence, next: StepSequence): boolean {
  if (next.start < ids.length) return false;
  for (let i = ids.length - 1; i >= 0; i--) if (ids[i] !== next.ids[i]) return false;
  return true;
}

/** A chain of continuations as its last sequence, each part with what its own step says of it. */
function join(chain: readonly StepSequence[]): MergedSequence {
  const { ids } = chain.at(-1)!;
  const targets = new Uint8Array(ids.length);
  const inputs: Record<string, Float32Array> = {};
  let temperatures: Float32Array | undefined;
  for (const step of chain) {
    targets.set(step.targets, step.start);
    if (step.temperatures !== undefined) {
      temperatures ??= new Float32Array(ids.length).fill(1);
      temperatures.set(step.temperatures, step.start);
    }
    for (const [name, values] of Object.entries(step.inputs)) {
      inputs[name] ??= new Float32Array(ids.length);
      inputs[name].set(values, step.start);
    }
  }
  return { ids, targets, inputs, steps: chain.length, ...(temperatures && { temperatures }) };
}
