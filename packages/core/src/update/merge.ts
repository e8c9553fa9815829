/**
 * Merges steps whose sequences continue one another into one sequence.
 *
 * With the whole history in compact prompts, a step's prompt, action and observation are, token for
 * token, the beginning of the next step's prompt. Attention is causal, so all of an episode's
 * targets can be computed in one pass over its longest sequence, with the same log-probabilities,
 * instead of one pass per step. Nothing is approximated; a sequence that does not continue another
 * stays separate.
 */
import type { ConstrainedSpan, TrainSequence } from "../engine/engine.js";

/** One step's tokens, with targets and inputs from `start` on; earlier tokens are context only. */
export interface StepSequence {
  readonly ids: readonly number[];
  readonly start: number;
  readonly targets: Uint8Array;
  readonly inputs: Readonly<Record<string, Float32Array>>;
  /** Default: 1 throughout. */
  readonly temperatures?: Float32Array;
  /** What the action was held to, at its place in `ids`. */
  readonly constraints?: readonly ConstrainedSpan[];
}

/** A sequence to train on; `steps` counts the steps in it. */
export interface MergedSequence extends TrainSequence {
  readonly steps: number;
}

/** Sequences in order, with each chain of continuations merged into its last. */
export function mergeContinuations(steps: readonly StepSequence[]): readonly MergedSequence[] {
  const chains: StepSequence[][] = [];
  for (const next of steps) {
    const chain = chains.at(-1);
    if (chain !== undefined && continues(chain.at(-1)!, next)) chain.push(next);
    else chains.push([next]);
  }
  return chains.map(join);
}

/** Whether `next` begins with `last` and uses the shared tokens as context only. */
function continues({ ids }: StepSequence, next: StepSequence): boolean {
  if (next.start < ids.length) return false;
  for (let i = ids.length - 1; i >= 0; i--) if (ids[i] !== next.ids[i]) return false;
  return true;
}

/** A chain of continuations as its last sequence, with each step's own targets and inputs. */
function join(chain: readonly StepSequence[]): MergedSequence {
  const { ids } = chain.at(-1)!;
  const targets = new Uint8Array(ids.length);
  const inputs: Record<string, Float32Array> = {};
  let temperatures: Float32Array | undefined;
  const constraints = chain.flatMap((step) => step.constraints ?? []);
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
  return {
    ...{ ids, targets, inputs, steps: chain.length },
    ...(temperatures && { temperatures }),
    ...(constraints.length > 0 && { constraints }),
  };
}
