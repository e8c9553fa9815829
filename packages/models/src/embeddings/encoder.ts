/** Pooling: how the vectors of a text's tokens become one. */

/** Their mean, or the vector of the first token, which BERT calls [CLS]. */
export const poolings = ["mean", "cls"] as const;

/** One of them. */
export type Pooling = (typeof poolings)[number];

/** Vectors of tokens, one after the other, and which of them are a text's. */
interface TokenVectors {
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

/** What encoders were trained to read before each kind of text. */

/** The words before a question and before what answers it. */
export interface EncoderPrefixes {
  readonly query: string;
  readonly passage: string;
}

/** The prefixes that encoders are known to need, by name. */
export const encoderPrefixes = {
  none: { query: "", passage: "" },
  /** E5 (Wang et al. 2022, arXiv 2212.03533). */
  e5: { query: "query: ", passage: "passage: " },
} as const satisfies Readonly<Record<string, EncoderPrefixes>>;

/**
 * Sentence encoders: texts as vectors of length 1, whose inner product measures their similarity.
 */

/** Turns texts into vectors. */
export interface Encoder {
  /** Distinguishes encoders whose vectors must not be mixed. */
  readonly name: string;
  readonly dimension: number;
  /** One vector of length 1 per text, in order. */
  encode(texts: readonly string[]): Promise<readonly Float32Array[]>;
}

/** Scales a vector to length 1 in place; a zero vector is left unchanged. */
export function normalise(vector: Float32Array): Float32Array {
  let sum = 0;
  for (const value of vector) sum += value * value;
  const length = Math.sqrt(sum);
  if (length > 0) for (let at = 0; at < vector.length; at++) vector[at]! /= length;
  return vector;
}

/** The encoder with `prefix` before every text. */
export function withPrefix(encoder: Encoder, prefix: string): Encoder {
  if (prefix === "") return encoder;
  return {
    ...encoder,
    name: `${encoder.name}, after ${JSON.stringify(prefix)}`,
    encode: (texts) => encoder.encode(texts.map((text) => prefix + text)),
  };
}
