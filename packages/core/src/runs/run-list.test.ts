import { describe, expect, it } from "vitest";
import { successInterval } from "../success-interval.js";
import { headlineOf } from "./run-list.js";

describe("the number that stands for a run", () => {
  it("is success in the latest evaluation, on the last of its splits, with its interval", () => {
    const evaluated = {
      ...{ "eval.valid_seen.success": 0.75, "eval.valid_seen.episodes": 100 },
      ...{ "eval.valid_unseen.success": 0.5, "eval.valid_unseen.episodes": 80 },
    };
    const lines: Record<string, number>[] = [
      { "train.success": 0.9 },
      evaluated,
      { update: 1, "train.success": 1 },
    ];
    expect(headlineOf(lines)).toEqual({
      success: 0.5,
      of: "eval.valid_unseen.success",
      interval: successInterval({ successes: 40, episodes: 80 }),
    });
  });

  it("has no interval where tasks were tried several times, which are not independent", () => {
    const summary = { success: 0.5, episodes: 80 };
    const interval = successInterval({ successes: 40, episodes: 80 });
    expect(headlineOf([], summary)).toEqual({ success: 0.5, of: "success", interval });
    const several = { ...summary, solvedWithin: 0.6 };
    expect(headlineOf([], several)).toEqual({ success: 0.5, of: "success" });
  });
});
