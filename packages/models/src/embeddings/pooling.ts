/** Pooling: how the vectors of a text's tokens become one. */

/** Their mean, or the vector of the first token, which BERT calls [CLS]. */
export const poolings = ["mean", "cls"] as const;

/** One of them. */
export type Pooling = (typeof poolings)[number];

/** Vectors of tokens, one after the other, and which of them are a text's. */
export interface TokenVectors {
  readonly data: Float32Array;
  readonly dimension: number;
  readonly from: number;
  readonly count: number;
}

/** One vector from a text's tokens; not scaled to any length. */
export function pool({ data, dimension, from, count }: TokenVectors, pooling: Pooling) {
  const taken = pooling === "cls" ? 1 : count;
  const pooled = new Float32Array(dimension);
  for (let token = from; token < from + taken; token++) {
    for (let at = 0; at < dimension; at++) pooled[at]! += data[token * dimension + at]! / taken;
  }
  return pooled;
}
