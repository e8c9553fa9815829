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
