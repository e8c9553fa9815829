import { describe, expect, it } from "vitest";
import { bootstrapInterval, pairedInterval, signTest } from "./intervals.js";

describe("the exact sign test", () => {
  it.each([
    // 2 · P(X ≤ k), X binomial with n trials and p = ½.
    [0, 0, 1],
    [5, 5, 1],
    [0, 5, 2 / 32],
    [1, 9, (2 * 11) / 1024],
    [9, 1, (2 * 11) / 1024],
    [2, 8, (2 * 56) / 1024],
  ])("of %i wins and %i losses", (wins, losses, p) => {
    expect(signTest(wins, losses)).toBeCloseTo(p, 12);
  });

  it("does not overflow on large lists", () => {
    // The normal approximation with continuity correction: z = (|1050 − 950| − 1) / √2000.
    expect(signTest(1050, 950)).toBeCloseTo(0.0268, 3);
    expect(signTest(0, 2000)).toBe(0);
  });
});

describe("the interval of a paired difference", () => {
  it("contains the difference and is mirrored when the two are swapped", () => {
    const pairs = { both: 20, first: 12, second: 3, neither: 15 };
    const [low, high] = pairedInterval(pairs);
    expect(low).toBeLessThan(9 / 50);
    expect(high).toBeGreaterThan(9 / 50);
    const [l, h] = pairedInterval({ ...pairs, first: 3, second: 12 });
    expect([-h, -l]).toEqual([low, high]);
  });

  it("has a width where no outcomes differ", () => {
    const [low, high] = pairedInterval({ both: 10, first: 0, second: 0, neither: 0 });
    expect(low).toBeLessThan(-0.2);
    expect(high).toBeGreaterThan(0.2);
  });

  it("covers the truth in about 95 of 100 samples", () => {
    // Exact: the probability of every table of 16 tasks, summed over those whose interval covers.
    const chances = [0.4, 0.25, 0.1, 0.25];
    const tasks = 16;
    const log = Array.from({ length: tasks + 1 }, () => 0);
    for (let n = 2; n <= tasks; n++) log[n] = log[n - 1]! + Math.log(n);
    let covered = 0;
    for (let both = 0; both <= tasks; both++)
      for (let first = 0; both + first <= tasks; first++)
        for (let second = 0; both + first + second <= tasks; second++) {
          const cells = [both, first, second, tasks - both - first - second];
          const chance = Math.exp(
            log[tasks]! + cells.reduce((sum, n, i) => sum + n * Math.log(chances[i]!) - log[n]!, 0),
          );
          const [low, high] = pairedInterval({ both, first, second, neither: cells[3]! });
          if (low <= 0.15 && high >= 0.15) covered += chance;
        }
    expect(covered).toBeGreaterThan(0.93);
    expect(covered).toBeLessThan(0.985);
  });
});

describe("the bootstrap over tasks", () => {
  it("is the same each time, and about two standard errors wide", () => {
    const values = Array.from({ length: 100 }, (_, i) => (i % 4) / 3);
    const [low, high] = bootstrapInterval(values);
    expect(bootstrapInterval(values)).toEqual([low, high]);
    // Standard deviation of 0, ⅓, ⅔, 1 is 0.3727.
    expect(low).toBeCloseTo(0.5 - (1.96 * 0.3727) / 10, 1);
    expect(high).toBeCloseTo(0.5 + (1.96 * 0.3727) / 10, 1);
    expect(high - low).toBeCloseTo((2 * 1.96 * 0.3727) / 10, 1.5);
  });
});
