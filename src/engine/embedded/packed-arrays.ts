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

/** How many tokens of a sequence are computed: the last one predicts nothing. */
export function computedLength(sequence: TargetSequence): number {
  return sequence.ids.length - 1;
}

/** Lays the sequences of a batch out. */
export function layOut(sequences: readonly TargetSequence[], batch: PackedBatch): PackedArrays {
  const { length, rowsPerStep, steps } = batch;
  const perStep = rowsPerStep * length;
  const ids = new Int32Array(steps * perStep);
  const segments = new Int32Array(ids.length).fill(-1);
  const positions = ids.map((_, i) => i % length);
  const found: (TargetSource & { readonly predictor: number })[][] = Array.from(
    { length: steps },
    () => [],
  );
  for (const { sequence, row, start } of batch.placements) {
    const given = sequences[sequence]!;
    const step = Math.floor(row / rowsPerStep);
    const base = row * length + start;
    for (let i = 0; i < computedLength(given); i++) {
      ids[base + i] = given.ids[i]!;
      positions[base + i] = i;
      segments[base + i] = start;
      if (isTarget(given, i + 1))
        found[step]!.push({
          slot: 0,
          predictor: base + i - step * perStep,
          sequence,
          token: i + 1,
        });
    }
  }
  const targetsPerStep = Math.max(1, ...found.map((targets) => targets.length));
  const predictors = new Int32Array(steps * targetsPerStep);
  const targets = new Int32Array(predictors.length);
  const present = new Float32Array(predictors.length);
  const sources: TargetSource[] = [];
  found.forEach((inStep, step) => {
    const begin = step * targetsPerStep;
    predictors.fill(unusedToken(inStep, perStep), begin, begin + targetsPerStep);
    inStep.forEach(({ predictor, sequence, token }, i) => {
      const slot = begin + i;
      predictors[slot] = predictor;
      targets[slot] = sequences[sequence]!.ids[token]!;
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

/** A token that predicts no target; padding must not repeat one that does (see `selectRows`). */
function unusedToken(found: readonly { readonly predictor: number }[], tokens: number): number {
  const used = new Set(found.map(({ predictor }) => predictor));
  for (let token = 0; token < tokens; token++) if (!used.has(token)) return token;
  // Every token predicts a target, so there is no padding.
  return 0;
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
