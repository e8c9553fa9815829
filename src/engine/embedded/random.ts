/** Seeded random numbers (sfc32, Chris Doty-Humphrey's small fast counting generator). */

/** A stream of random numbers that its seed determines. */
export interface Random {
  /** Uniform in [0, 1), with 32 bits. */
  uniform(): number;
  /** Normal with mean 0 and deviation 1. */
  normal(): number;
}

/** The stream of a seed; further numbers select independent streams of the same seed. */
export function createRandom(seed: number, ...streams: readonly number[]): Random {
  let a = mix(seed | 0);
  let b = mix(a ^ Math.floor(seed / 2 ** 32));
  let c = mix(b ^ 0x9e3779b9);
  for (const stream of streams) {
    a = mix(a ^ (stream | 0));
    b = mix(b + a);
    c = mix(c ^ b);
  }
  let counter = 1;
  const next = () => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  // The first numbers after seeding are still alike for similar seeds.
  for (let i = 0; i < 12; i++) next();
  const uniform = () => next() / 2 ** 32;
  return {
    uniform,
    // Box and Muller; 1 - u is never 0.
    normal: () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()),
  };
}

/** A bijection of 32-bit integers that scatters neighbours (the finalizer of MurmurHash3). */
function mix(value: number): number {
  let x = value | 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return x ^ (x >>> 16);
}
