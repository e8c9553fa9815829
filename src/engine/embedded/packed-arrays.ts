/** The typed arrays of a packed batch, as the graphs of `program.ts` take them, and their results taken apart. */
import type { TargetSequence } from "../engine.js";
import type { PackedBatch } from "./packing.js";

/** A batch of packed sequences ready to be computed. */
export interface PackedArrays {
  readonly batch: PackedBatch;
  readonly ids: Int32Array;
  readonly positions: Int32Array;
  readonly segments: Int32Array;
  readonly predictors: Int32Array;
  readonly targets: Int32Array;
  /** 1 for a target, 0 for padding. */
  readonly present: Float32Array;
  /** Padded number of targets of a step. */
  readonly targetsPerStep: number;
  /** For every target: its place in the arrays, its sequence and its token. */
  readonly sources: readonly TargetSource[];
}

export interface TargetSource {
  readonly slot: number;
  readonly sequence: number;
  readonly token: number;
}

/** Whether token i of a sequence is a target; nothing predicts the first one. */
export function isTarget(sequence: TargetSequence, i: number): boolean {
  return i > 0 && (sequence.targets === undefined || sequence.targets[i] !== 0);
}

/** Lays the sequences of a batch out. */
export function layOut(sequences: readonly TargetSequence[], batch: PackedBatch): PackedArrays {
  const { length, rowsPerStep, steps } = batch;
  const tokens = steps * rowsPerStep * length;
  const ids = new Int32Array(tokens);
  const segments = new Int32Array(tokens).fill(-1);
  const positions = new Int32Array(tokens);
  for (let i = 0; i < tokens; i++) positions[i] = i % length;
  const perStep: { predictor: number; target: number; sequence: number; token: number }[][] =
    Array.from({ length: steps }, () => []);
  for (const { sequence, row, start } of batch.placements) {
    const given = sequences[sequence]!;
    const step = Math.floor(row / rowsPerStep);
    const base = row * length + start;
    for (let i = 0; i < given.ids.length; i++) {
      ids[base + i] = given.ids[i]!;
      positions[base + i] = i;
      segments[base + i] = start;
      if (!isTarget(given, i)) continue;
      const predictor = base + i - 1 - step * rowsPerStep * length;
      perStep[step]!.push({ predictor, target: given.ids[i]!, sequence, token: i });
    }
  }
  const targetsPerStep = Math.max(1, ...perStep.map((targets) => targets.length));
  const predictors = new Int32Array(steps * targetsPerStep).fill(length - 1);
  const targets = new Int32Array(predictors.length);
  const present = new Float32Array(predictors.length);
  const sources: TargetSource[] = [];
  perStep.forEach((found, step) => {
    found.forEach(({ predictor, target, sequence, token }, i) => {
      const slot = step * targetsPerStep + i;
      predictors[slot] = predictor;
      targets[slot] = target;
      present[slot] = 1;
      sources.push({ slot, sequence, token });
    });
  });
  return {
    batch,
    ids,
    positions,
    segments,
    predictors,
    targets,
    present,
    targetsPerStep,
    sources,
  };
}

/** Spreads one number per target back over the tokens of the sequences. */
export function scatterTargets(
  packed: PackedArrays,
  column: Float32Array,
  into: readonly Float32Array[],
): void {
  for (const { slot, sequence, token } of packed.sources) into[sequence]![token] = column[slot]!;
}

/** Collects one number per target from arrays that have one per token. */
export function gatherTargets(
  packed: PackedArrays,
  values: (sequence: number) => ArrayLike<number>,
): Float32Array {
  const column = new Float32Array(packed.present.length);
  for (const { slot, sequence, token } of packed.sources) column[slot] = values(sequence)[token]!;
  return column;
}
