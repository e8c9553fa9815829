import { dose } from "@pawl/core/dose-testing.js";
import { createRandom } from "@pawl/core/random.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { attentionBlocks, type MicroBatch, packSequences } from "./packing.js";

/** Share of the computed tokens that are padding. */
function wastedShare(
  lengths: readonly number[],
  shares: readonly (readonly MicroBatch[])[],
): number {
  const computed = shares
    .flat()
    .reduce((sum, { length, sequences }) => sum + length * sequences.length, 0);
  return 1 - lengths.reduce((sum, length) => sum + length, 0) / computed;
}

const options = { tokensPerMicroBatch: 1024, attentionCost: 0.001, microBatchCost: 32 };

/**
 * Typical lengths in rollouts: a prompt of about 45 tokens, an action of 3 or 4, an observation of
 * 11.
 */
function rolloutLengths(count: number, seed: number, spread: number): readonly number[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, () =>
    Math.max(8, Math.round(45 + 3.4 + 11.5 + spread * random.normal())),
  );
}

describe("packing", () => {
  it("computes every sequence once, in a micro-batch that is long enough, for any number of replicas", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 120 }),
        fc.integer({ min: 16, max: 2048 }),
        fc.integer({ min: 1, max: 5 }),
        (lengths, tokensPerMicroBatch, replicas) => {
          const shares = packSequences(lengths, { ...options, tokensPerMicroBatch, replicas });
          expect(shares).toHaveLength(replicas);
          const placed = shares.flat().flatMap((microBatch) => microBatch.sequences);
          const expected = lengths.flatMap((length, i) => (length > 0 ? [i] : []));
          expect([...placed].sort((a, b) => a - b)).toEqual(expected);
          for (const { length, sequences } of shares.flat()) {
            expect(Math.max(...sequences.map((i) => lengths[i]!))).toBeLessThanOrEqual(length);
            expect(length % attentionBlocks(length)).toBe(0);
            expect(sequences.length * length).toBeLessThanOrEqual(
              Math.max(tokensPerMicroBatch, length),
            );
          }
        },
      ),
      { numRuns: dose(60) },
    );
  });

  it("wastes less than a tenth on rollouts, of any spread and number", () => {
    for (const spread of [0, 4, 10, 25])
      for (const count of [128, 512, 4000]) {
        const lengths = rolloutLengths(count, spread + count, spread);
        expect(wastedShare(lengths, packSequences(lengths, options))).toBeLessThan(0.1);
      }
  });

  it("wastes less than a tenth if few sequences are very long", () => {
    const lengths = [...rolloutLengths(2000, 1, 5), 900, 850, 700, 640, 610];
    expect(wastedShare(lengths, packSequences(lengths, options))).toBeLessThan(0.1);
  });

  it("fills micro-batches if sequences have equal lengths", () => {
    const [share] = packSequences(new Array(64).fill(256), options);
    expect(share!.map(({ length, sequences }) => [length, sequences.length])).toEqual(
      new Array(16).fill([256, 4]),
    );
  });

  it("gives replicas equal shares of a few sequences of different lengths", () => {
    const lengths = [169, 331, 409, 316, 227, 230, 228, 131];
    const shares = packSequences(lengths, { ...options, tokensPerMicroBatch: 512, replicas: 2 });
    const [one, two] = shares.map((share) =>
      share.reduce((sum, { length, sequences }) => sum + length * sequences.length, 0),
    );
    expect(Math.abs(one! - two!)).toBeLessThan(0.1 * (one! + two!));
    expect(wastedShare(lengths, shares)).toBeLessThan(0.05);
  });
});
