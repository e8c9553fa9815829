import { expect, it } from "vitest";
import { learningRate, optimizerOptions } from "./schedule.js";

it("rises, then stays constant or falls to 0", () => {
  const constant = optimizerOptions.parse({ learningRate: 1, warmup: 3 });
  expect([0, 1, 2, 50].map((step) => learningRate(constant, step, 100) * 3)).toEqual([1, 2, 3, 3]);
  const cosine = optimizerOptions.parse({ learningRate: 1, warmup: 0, schedule: "cosine" });
  expect(learningRate(cosine, 0, 10)).toBe(1);
  expect(learningRate(cosine, 5, 10)).toBeCloseTo(0.5);
  expect(learningRate(cosine, 10, 10)).toBeCloseTo(0);
});

it("is rejected out of bounds", () => {
  const fits = (settings: object): boolean => optimizerOptions.safeParse(settings).success;
  for (const name of ["beta1", "beta2"]) {
    expect([0, 0.5, 0.999].every((value) => fits({ [name]: value }))).toBe(true);
    expect([-0.1, 1].some((value) => fits({ [name]: value }))).toBe(false);
  }
  for (const name of ["learningRate", "gradClipNorm"])
    expect([fits({ [name]: 0.1 }), fits({ [name]: 0 })]).toEqual([true, false]);
  for (const name of ["warmup", "weightDecay"])
    expect([fits({ [name]: 0 }), fits({ [name]: -1 })]).toEqual([true, false]);
});
