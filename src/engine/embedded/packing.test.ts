import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRandom } from "../../random.js";
import { packSequences, wastedShare } from "./packing.js";

const options = { tokensPerStep: 1024, attentionCost: 0.001 };

/** Lengths as rollouts have them: a prompt of about 45 tokens, an action of 3 or 4, an observation of 11. */
function rolloutLengths(count: number, seed: number, spread: number): readonly number[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, () =>
    Math.max(8, Math.round(45 + 3.4 + 11.5 + spread * random.normal())),
  );
}

describe("packing", () => {
  it("places every sequence once, inside its row, and overlaps none", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 120 }),
        fc.integer({ min: 16, max: 2048 }),
        (lengths, tokensPerStep) => {
          const batches = packSequences(lengths, { ...options, tokensPerStep });
          const placed = batches.flatMap((batch) => batch.placements.map((p) => p.sequence));
          const expected = lengths.flatMap((length, i) => (length > 0 ? [i] : []));
          expect([...placed].sort((a, b) => a - b)).toEqual(expected);
          for (const batch of batches) {
            const taken = new Set<number>();
            for (const { sequence, row, start } of batch.placements) {
              expect(row).toBeLessThan(batch.steps * batch.rowsPerStep);
              expect(start + lengths[sequence]!).toBeLessThanOrEqual(batch.length);
              for (let i = 0; i < lengths[sequence]!; i++) {
                const token = row * batch.length + start + i;
                expect(taken.has(token)).toBe(false);
                taken.add(token);
              }
            }
            expect(batch.rowsPerStep * batch.length).toBeLessThanOrEqual(
              Math.max(tokensPerStep, batch.length),
            );
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it("wastes less than a tenth on rollouts, whatever their spread and number", () => {
    for (const spread of [0, 4, 10, 25])
      for (const count of [128, 512, 4000]) {
        const lengths = rolloutLengths(count, spread + count, spread);
        expect(wastedShare(lengths, packSequences(lengths, options))).toBeLessThan(0.1);
      }
  });

  it("wastes less than a tenth where few sequences are very long", () => {
    const lengths = [...rolloutLengths(2000, 1, 5), 900, 850, 700, 640, 610];
    expect(wastedShare(lengths, packSequences(lengths, options))).toBeLessThan(0.1);
  });

  it("keeps rows short where sequences already fit well", () => {
    const [batch] = packSequences(new Array(64).fill(256), options);
    expect(batch).toMatchObject({ length: 256, rowsPerStep: 4, steps: 16 });
  });
});
