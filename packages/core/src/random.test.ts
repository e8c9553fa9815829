import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRandom, mixSeed } from "./random.js";

const seeds = fc.integer({ min: 0, max: 2 ** 32 - 1 });

describe("createRandom", () => {
  it("repeats itself for a seed and differs between neighbouring seeds", () => {
    const draw = (seed: number) => Array.from({ length: 8 }, createRandom(seed).next);
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
  });

  it("continues equally and independently from a clone", () => {
    fc.assert(
      fc.property(seeds, fc.nat(20), (seed, skipped) => {
        const random = createRandom(seed);
        for (let i = 0; i < skipped; i++) random.next();
        const copy = random.clone();
        const ahead = [random.next(), random.next()];
        expect([copy.next(), copy.next()]).toEqual(ahead);
      }),
    );
  });

  it("is uniform enough: a chi-squared test over 16 bins passes for many seeds", () => {
    for (let seed = 0; seed < 20; seed++) {
      const random = createRandom(seed);
      const bins = new Array<number>(16).fill(0);
      const draws = 16_000;
      for (let i = 0; i < draws; i++) bins[random.int(16)]!++;
      const chi2 = bins.reduce((sum, n) => sum + (n - draws / 16) ** 2 / (draws / 16), 0);
      // 15 degrees of freedom: 50 is passed by chance once in 80,000 draws.
      expect(chi2).toBeLessThan(50);
    }
  });

  it("has a normal distribution of mean 0 and deviation 1", () => {
    const random = createRandom(3);
    const draws = Array.from({ length: 20_000 }, random.normal);
    const mean = draws.reduce((sum, x) => sum + x, 0) / draws.length;
    const variance = draws.reduce((sum, x) => sum + (x - mean) ** 2, 0) / draws.length;
    expect(Math.abs(mean)).toBeLessThan(0.03);
    expect(Math.abs(variance - 1)).toBeLessThan(0.05);
  });

  it("shuffles without losing anything", () => {
    fc.assert(
      fc.property(seeds, fc.array(fc.integer()), (seed, items) => {
        const shuffled = createRandom(seed).shuffle([...items]);
        expect(shuffled.sort((a, b) => a - b)).toEqual([...items].sort((a, b) => a - b));
      }),
    );
  });
});

describe("mixSeed", () => {
  it("depends on the boundaries between parts", () => {
    expect(mixSeed("ab", "c")).not.toBe(mixSeed("a", "bc"));
    expect(mixSeed(1, 2)).not.toBe(mixSeed(12));
  });

  it("has few collisions among neighbouring episodes", () => {
    const seen = new Set<number>();
    for (let group = 0; group < 200; group++) {
      for (let attempt = 0; attempt < 50; attempt++) seen.add(mixSeed(1, group, attempt));
    }
    expect(seen.size).toBeGreaterThan(9_990);
  });
});
