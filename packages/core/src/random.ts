/**
 * Seeded random numbers: the only source of randomness in this project, so that a run can be
 * repeated.
 *
 * The generator is sfc32 ("small fast counter") with 128 bits of state, which passes the usual
 * statistical batteries. Its state is four integers, so it can be copied and recorded.
 */

/** A seeded source of random numbers. */
export interface Random {
  /** Uniform in [0, 1), with 32 random bits. */
  next(): number;
  /** Uniform integer in [0, count). */
  int(count: number): number;
  /** Normal with mean 0 and standard deviation 1. */
  normal(): number;
  /** One of the items, uniformly. */
  pick<T>(items: readonly T[]): T;
  /** Reorders the items in place (Fisher–Yates) and returns them. */
  shuffle<T>(items: T[]): T[];
  /** An independent copy in the same state. */
  clone(): Random;
}

/** A generator for this seed; equal seeds give equal numbers on every machine. */
export function createRandom(seed: number): Random {
  const state = new Int32Array([seed, seed / 2 ** 32, 0x9e3779b9, 1]);
  const random = fromState(state);
  // The first outputs of similar seeds are similar: run the counter until they are not.
  for (let i = 0; i < 15; i++) random.next();
  return random;
}

function fromState(state: Int32Array): Random {
  let a = state[0]!;
  let b = state[1]!;
  let c = state[2]!;
  let counter = state[3]!;
  const bits = (): number => {
    const result = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + result;
    c |= 0;
    return result >>> 0;
  };
  const next = (): number => bits() / 2 ** 32;
  const int = (count: number): number => Math.floor(next() * count);
  return {
    next,
    int,
    // Box and Muller; 1 - u is never 0.
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
    pick<T>(items: readonly T[]): T {
      if (items.length === 0) throw new RangeError("pick: there is nothing to pick from");
      return items[int(items.length)]!;
    },
    shuffle<T>(items: T[]): T[] {
      for (let i = items.length - 1; i > 0; i--) {
        const j = int(i + 1);
        [items[i], items[j]] = [items[j]!, items[i]!];
      }
      return items;
    },
    clone: () => fromState(new Int32Array([a, b, c, counter])),
  };
}

/**
 * One seed from several numbers and words: the seed of an episode from the run's seed, and so on.
 */
export function mixSeed(...parts: readonly (number | string)[]): number {
  // FNV-1a over the characters, then MurmurHash3's finaliser so that similar inputs end far apart.
  let hash = 0x811c9dc5;
  for (const part of parts) {
    for (const character of `${part}\u0000`) {
      hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193);
    }
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
