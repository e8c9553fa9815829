import { expect, it } from "vitest";
import { estimate, pairedDifference, pooled } from "./statistics.js";

it("a mean over three seeds has Student's interval", () => {
  // By hand: deviation 2, and 4.303 · 2 / √3 on either side.
  const { mean, n, deviation, interval } = estimate([1, 3, 5]);
  expect([mean, n, deviation]).toEqual([3, 3, 2]);
  expect(interval![0]).toBeCloseTo(3 - 4.9687, 3);
  expect(interval![1]).toBeCloseTo(3 + 4.9687, 3);
  expect(estimate([7])).toEqual({ mean: 7, n: 1 });
});

it("differences are of the seeds that have both", () => {
  const values = new Map([
    [0, 4],
    [2, 9],
  ]);
  expect(pairedDifference(values, new Map([[2, 7]]))).toEqual({ mean: 2, n: 1 });
  expect(pairedDifference(values, new Map([[1, 7]]))).toBeUndefined();
});

it("estimates taken together are the estimate of all their values", () => {
  const parts = [[-3, 2.2, -18.7], [5.2], [1.5, -22.4, 4.5, -2.2]];
  const { mean, n, deviation, interval } = estimate(parts.flat());
  expect(pooled(parts.map(estimate))).toEqual({
    ...{ mean: expect.closeTo(mean, 9), n, deviation: expect.closeTo(deviation!, 9) },
    interval: interval!.map((end) => expect.closeTo(end, 9)),
  });
  expect(pooled([estimate([7])])).toEqual({ mean: 7, n: 1 });
});
