import { expect, it } from "vitest";
import { learningRate, optimizerOptions } from "./schedule.js";

it("rises, then stays or falls to nothing", () => {
  const constant = optimizerOptions.parse({ learningRate: 1, warmup: 3 });
  expect([0, 1, 2, 50].map((step) => learningRate(constant, step, 100) * 3)).toEqual([1, 2, 3, 3]);
  const cosine = optimizerOptions.parse({ learningRate: 1, warmup: 0, schedule: "cosine" });
  expect(learningRate(cosine, 0, 10)).toBe(1);
  expect(learningRate(cosine, 5, 10)).toBeCloseTo(0.5);
  expect(learningRate(cosine, 10, 10)).toBeCloseTo(0);
});
