/**
 * CPython's random numbers, which determine the tasks of the original environment: Mersenne Twister
 * (MT19937) seeded by an integer, and the drawing methods of `random.Random`.
 */

const N = 624;
const M = 397;

/** Draws of CPython's `random.Random(seed)`. */
export interface PythonRandom {
  /** `random()`: uniform in [0, 1) with 53 random bits. */
  random(): number;
  /** `uniform(low, high)`. */
  uniform(low: number, high: number): number;
  /** `shuffle(items)`: in place. */
  shuffle<Items extends { readonly length: number; [at: number]: unknown }>(items: Items): void;
  /** `sample(items, count)` for up to 21 items, where CPython takes from a shrinking pool. */
  sample<T>(items: readonly T[], count: number): T[];
}

/** `random.Random(seed)` for an integer from 0 to 2^32 - 1. */
export function createPythonRandom(seed: number): PythonRandom {
  if (!Number.isInteger(seed) || seed < 0 || seed > 0xffffffff)
    throw new RangeError(`a seed is an integer from 0 to 4294967295, not ${seed}`);
  const state = seededState(seed);
  let position = N;

  const bits32 = (): number => {
    if (position === N) {
      twist(state);
      position = 0;
    }
    let y = state[position++]!;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    y ^= y >>> 18;
    return y >>> 0;
  };
  const random = (): number => {
    const high = bits32() >>> 5;
    const low = bits32() >>> 6;
    return (high * 67108864 + low) / 9007199254740992;
  };
  /** Uniform below `count`: draws as many bits as it has until the number is small enough. */
  const below = (count: number): number => {
    const shift = Math.clz32(count);
    let drawn = bits32() >>> shift;
    while (drawn >= count) drawn = bits32() >>> shift;
    return drawn;
  };

  return {
    random,
    uniform: (low, high) => low + (high - low) * random(),
    shuffle(items) {
      for (let at = items.length - 1; at > 0; at--) {
        const other = below(at + 1);
        const held = items[at];
        items[at] = items[other];
        items[other] = held;
      }
    },
    sample<T>(items: readonly T[], count: number): T[] {
      if (count > items.length || items.length > 21)
        throw new RangeError(`cannot sample ${count} of ${items.length} items`);
      const pool = [...items];
      return Array.from({ length: count }, (_, drawn) => {
        const left = pool.length - drawn;
        const at = below(left);
        const item = pool[at]!;
        pool[at] = pool[left - 1]!;
        return item;
      });
    },
  };
}

/** CPython seeds by array (`init_by_array`) even for a single number. */
function seededState(seed: number): Uint32Array {
  const state = new Uint32Array(N);
  state[0] = 19650218;
  for (let at = 1; at < N; at++) {
    const before = state[at - 1]!;
    state[at] = Math.imul(1812433253, before ^ (before >>> 30)) + at;
  }
  let at = 1;
  for (let round = 0; round < N; round++) {
    const before = state[at - 1]!;
    state[at] = (state[at]! ^ Math.imul(before ^ (before >>> 30), 1664525)) + seed;
    at = nextAt(state, at);
  }
  for (let round = 0; round < N - 1; round++) {
    const before = state[at - 1]!;
    state[at] = (state[at]! ^ Math.imul(before ^ (before >>> 30), 1566083941)) - at;
    at = nextAt(state, at);
  }
  state[0] = 0x80000000;
  return state;
}

function nextAt(state: Uint32Array, at: number): number {
  if (at + 1 < N) return at + 1;
  state[0] = state[N - 1]!;
  return 1;
}

function twist(state: Uint32Array): void {
  for (let at = 0; at < N; at++) {
    const y = (state[at]! & 0x80000000) | (state[(at + 1) % N]! & 0x7fffffff);
    state[at] = state[(at + M) % N]! ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
  }
}
