import { describe, expect, it } from "vitest";
import { type LearningRateSchedule, learningRateAt } from "./schedule.js";

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
