import { expect, it } from "vitest";
import { choose, pairsThatFit, standingsOf } from "../bench/shared/regime-plan.js";

const flat = (...success: number[]) => ({ success, kl: success.map(() => 0.1) });

it("compares candidates over the updates that all have", () => {
  const { updates, standings } = standingsOf({
    "25-slow": flat(0, 0, 0, 0.1, 0.1, 0.1, 0.9),
    "50-slow": flat(0.3, 0.3, 0.3, 0.3, 0.3, 0.3),
  });
  expect(updates).toBe(6);
  expect(standings["25-slow"]!.gain).toBeCloseTo(0.1);
  expect(standings["50-slow"]!.last).toBeCloseTo(0.3);
  // Fewer than six: halves.
  const few = standingsOf({ "25-slow": flat(0, 0.2, 0.5, 0.1, 0.3) });
  expect(few.standings["25-slow"]!.gain).toBeCloseTo(0.2 - 0.1);
});

it("chooses the fewest demonstrations that learn, then gain, then KL; else the highest success", () => {
  const at = (gain: number, last: number, kl = 0.1) => ({ gain, last, kl });
  expect(choose({ "50-slow": at(0.3, 0.6), "25-slow": at(0.05, 0.1) })).toBe("25-slow");
  expect(choose({ "25-fast": at(0.1, 0.2), "25-slow": at(0.2, 0.2) })).toBe("25-slow");
  expect(choose({ "25-fast": at(0.1, 0.2, 0.2), "25-slow": at(0.1, 0.3, 0.1) })).toBe("25-slow");
  expect(choose({ "50-slow": at(0.04, 0.6), "25-slow": at(0.03, 0.1) })).toBe("50-slow");
});

it("runs as many pairs as get fifteen updates", () => {
  expect(pairsThatFit({ seconds: 30, runs: 5 }, 960)).toBe(4);
  expect(pairsThatFit({ seconds: 50, runs: 5 }, 960)).toBe(3);
  expect(pairsThatFit({ seconds: 200, runs: 5 }, 960)).toBe(2);
});
