import { describe, expect, it } from "vitest";
import { openEnvironment } from "../envs/open.js";
import type { Episode, Group } from "../rollout/episode.js";
import { drawTasks, nextSuccess } from "./curriculum.js";

const environment = openEnvironment({ name: "household" });
const options = { split: "train", groups: 16 } as const;

/** How often each type is drawn over many updates. */
function shares(
  curriculum: "uniform" | "failures",
  success = {},
): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let seed = 0; seed < 400; seed++) {
    const tasks = drawTasks(environment, { ...options, curriculum }, seed, success);
    expect(new Set(tasks).size).toBe(16);
    for (const { type } of tasks) counts[type] = (counts[type] ?? 0) + 1 / (400 * 16);
  }
  return counts;
}

const group = (type: string, results: readonly (boolean | "broken")[]): Group => ({
  index: 0,
  task: { id: `train/${type}`, split: "train", type },
  episodes: results.map(
    (result) =>
      ({ success: result === true, stop: result === "broken" ? "broken" : "done" }) as Episode,
  ),
});

describe("a curriculum", () => {
  it("draws all types alike, whatever their success, when it is uniform", () => {
    for (const share of Object.values(shares("uniform", { pick: 1 })))
      expect(share).toBeCloseTo(1 / 6, 1);
  });

  it("draws what fails more often, in proportion to 1 − success + 0.2", () => {
    const rates = { pick: 1, look: 0.8, clean: 0.6, heat: 0, cool: 0.5 };
    // pick_two was not played yet and counts as 0.5.
    const weights = { pick: 0.2, look: 0.4, clean: 0.6, heat: 1.2, cool: 0.7, pick_two: 0.7 };
    const total = Object.values(weights).reduce((sum, weight) => sum + weight, 0);
    const drawn = shares("failures", rates);
    for (const [type, weight] of Object.entries(weights))
      expect(Math.abs(drawn[type]! - weight / total)).toBeLessThan(0.02);
  });

  it("draws the whole split when it is no larger than an update", () => {
    const small = { ...environment, tasks: () => environment.tasks("train").slice(0, 7) };
    const tasks = drawTasks(small, { ...options, curriculum: "failures" }, 3, { pick: 0.9 });
    expect(new Set(tasks)).toEqual(new Set(small.tasks()));
  });

  it("remembers success by type, latest most, and nothing of broken episodes", () => {
    const first = nextSuccess({}, [
      group("pick", [true, false]),
      group("heat", [false, "broken"]),
      group("look", ["broken"]),
    ]);
    expect(first).toEqual({ pick: 0.5, heat: 0 });
    const next = nextSuccess(first, [group("pick", [true]), group("pick", [true])]);
    expect(next.pick).toBeCloseTo(0.6, 12);
    expect(next.heat).toBe(0);
  });
});
