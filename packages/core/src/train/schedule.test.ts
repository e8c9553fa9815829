import { describe, expect, it } from "vitest";
import { expectedSteps, lengthNotice } from "./rl.js";
import {
  type LearningRateSchedule,
  learningRate,
  learningRateAt,
  optimizerOptions,
} from "./schedule.js";

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

it("says after the first update where the length of the run was guessed far off", () => {
  const optimizer = optimizerOptions.parse({ schedule: "cosine" });
  const options = { groups: 4, groupSize: 8, minibatch: 64, updates: 50, optimizer };
  // 32 episodes of 20 steps are 10 mini-batches.
  expect(expectedSteps(0, 0, options)).toBe(500);
  expect(expectedSteps(12, 3, options)).toBe(200);
  const after = (optimizerSteps: number, index = 0, more = {}) =>
    lengthNotice({ index, optimizerSteps }, { ...options, ...more });
  for (const near of [5, 10, 20]) expect(after(near)).toBeUndefined();
  expect(after(4)).toMatch(/cosine: the first update assumed 20 steps an episode, 500 .* be 200,/);
  expect(after(21)).toMatch(/500 optimiser steps in all; .* there will be 1050,/);
  expect(after(4, 1)).toBeUndefined();
  expect(after(0)).toBeUndefined();
  expect(after(4, 0, { optimizer: optimizerOptions.parse({}) })).toBeUndefined();
});

function rates(schedule: LearningRateSchedule, steps: number): readonly number[] {
  return Array.from({ length: steps }, (_, step) =>
    Number(learningRateAt(schedule, step).toFixed(6)),
  );
}

describe("learning rates", () => {
  it("rise to the peak and stay there", () => {
    expect(rates({ peak: 1, warmupSteps: 4 }, 7)).toEqual([0.25, 0.5, 0.75, 1, 1, 1, 1]);
    expect(rates({ peak: 0.5 }, 2)).toEqual([0.5, 0.5]);
  });

  it("fall linearly or along a cosine to their end, and not below it", () => {
    const schedule = { peak: 1, warmupSteps: 1, totalSteps: 5, endShare: 0.2 };
    expect(rates({ ...schedule, decay: "linear" }, 8)).toEqual([
      1, 1, 0.8, 0.6, 0.4, 0.2, 0.2, 0.2,
    ]);
    expect(rates({ ...schedule, decay: "cosine" }, 6)).toEqual([
      1, 1, 0.882843, 0.6, 0.317157, 0.2,
    ]);
  });

  it("need the length of the run in order to fall", () => {
    expect(() => learningRateAt({ peak: 1, decay: "cosine" }, 0)).toThrow(/totalSteps/);
    expect(() =>
      learningRateAt({ peak: 1, decay: "linear", warmupSteps: 5, totalSteps: 5 }, 5),
    ).toThrow(/totalSteps/);
  });
});
