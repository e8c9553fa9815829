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

/** Keeps a copy of the weights that other threads can read. */
export interface Mirror {
  /** The set in shared memory; copied only if its version is new. */
  share(weights: WeightSet): WeightSet;
}

/** An empty mirror. */
export function createMirror(): Mirror {
  const shared = new Map<string, WeightSet>();
  return {
    share: (weights) => {
      const known = shared.get(weights.name);
      if (known?.version === weights.version) return known;
      const arrays = known?.arrays ?? allocated(weights.arrays);
      for (const [name, array] of arrays) array.set(weights.arrays.get(name)!);
      const fresh = { ...weights, arrays };
      shared.set(weights.name, fresh);
      return fresh;
    },
  };
}

function allocated(arrays: Parameters): Parameters {
  return new Map(
    [...arrays].map(([name, { byteLength }]) => [
      name,
      new Float32Array(new SharedArrayBuffer(byteLength)),
    ]),
  );
}

/** Private copies of shared weights: ONNX Runtime cannot read shared memory. */
export function createCopies(): (weights: WeightSet) => WeightSet {
  const copies = new Map<string, WeightSet>();
  return (weights) => {
    const known = copies.get(weights.name);
    if (known?.version === weights.version) return known;
    const arrays = new Map(known?.arrays ?? []);
    for (const [name, array] of weights.arrays) {
      const copy = arrays.get(name) ?? new Float32Array(array.length);
      copy.set(array);
      arrays.set(name, copy);
    }
    const fresh = { ...weights, arrays };
    copies.set(weights.name, fresh);
    return fresh;
  };
}
