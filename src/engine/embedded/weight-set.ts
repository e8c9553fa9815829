/** Weights as the replicas see them, with a version that tells when they have changed. */

/** Weights by tensor name. */
export type Parameters = ReadonlyMap<string, Float32Array>;

/** The weights used by a call. */
export interface WeightSet {
  readonly name: "policy" | "reference" | "actor";
  /** A different number means different weights. */
  readonly version: number;
  readonly arrays: Parameters;
}

/** The copy of a weight set; made anew only if the version of that name is new. */
export type CopyWeights = (weights: WeightSet) => WeightSet;

/** Copies in memory that other threads can read. */
export function sharedCopies(): CopyWeights {
  return copies((length) => {
    const bytes = length * Float32Array.BYTES_PER_ELEMENT;
    return new Float32Array(new SharedArrayBuffer(bytes));
  });
}

/** Private copies of shared weights: ONNX Runtime cannot read shared memory. */
export function privateCopies(): CopyWeights {
  return copies((length) => new Float32Array(length));
}

function copies(allocate: (length: number) => Float32Array): CopyWeights {
  const latest = new Map<string, WeightSet>();
  return (weights) => {
    const last = latest.get(weights.name);
    if (last?.version === weights.version) return last;
    const arrays = new Map(last?.arrays ?? []);
    for (const [name, array] of weights.arrays) {
      const copy = arrays.get(name) ?? allocate(array.length);
      copy.set(array);
      arrays.set(name, copy);
    }
    const copied = { ...weights, arrays };
    latest.set(weights.name, copied);
    return copied;
  };
}
