/** GRPO, RLOO and GiGPO: worked examples, and properties of any group. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { discountedReturns, type GigpoOptions, gigpo, stepAdvantages } from "./gigpo.js";
import { grpo } from "./grpo.js";
import { rloo } from "./rloo.js";
import { type ScoredEpisode, scores } from "./scores.js";
import { mean, type StepTable, statisticsOver, variance } from "./statistics.js";

const anyScore = fc.integer({ min: -100, max: 100 }).map((n) => n / 10);
const anyTable = fc.array(fc.array(anyScore, { minLength: 1, maxLength: 5 }), {
  minLength: 1,
  maxLength: 6,
});
const anyUnit = fc.constantFrom("step" as const, "episode" as const);
const anyNorm = fc.constantFrom("mean-std" as const, "mean" as const);
const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

function expectClose(actual: StepTable, expected: StepTable, tolerance = 1e-9) {
  expect(actual.map((steps) => steps.length)).toEqual(expected.map((steps) => steps.length));
  const wanted = expected.flat();
  actual.flat().forEach((x, i) => {
    expect(Math.abs(x - wanted[i]!)).toBeLessThanOrEqual(tolerance * (1 + Math.abs(wanted[i]!)));
  });
}

const ESTIMATORS = {
  grpo: (table: StepTable, per: "step" | "episode") => grpo(table, per),
  "grpo, mean only": (table: StepTable, per: "step" | "episode") => grpo(table, per, "mean"),
  rloo: (table: StepTable, per: "step" | "episode") => rloo(table, per),
};

describe("scores", () => {
  const episodes: ScoredEpisode[] = [
    { return: 10, rewards: [0, 10], fined: [true, false] },
    { return: 0, rewards: [0], fined: [true] },
  ];

  it("are the return minus the penalty, the same for every step of an episode", () => {
    const at = (penaltyPlace: "inside" | "after", penalty = 0.1) =>
      scores(episodes, { penalty, penaltyPlace });
    expect(at("inside")).toEqual([[9.9, 10], [-0.1]]);
    expect(at("after")).toEqual([[10, 10], [0]]);
    expect(at("inside", 0)).toEqual([[10, 10], [0]]);
  });
});

describe("worked examples", () => {
  it("the mean of an empty list is 0", () => {
    expect([mean([]), mean([5]), mean([1, 2, 6])]).toEqual([0, 5, 3]);
    expect([variance([]), variance([5]), variance([1, 3])]).toEqual([0, 0, 2]);
  });

  it("GRPO over steps: long episodes weigh more", () => {
    // Values 10, 0, 0: mean 10/3, unbiased variance (400/9 + 100/9 + 100/9) / 2 = 100/3.
    const std = Math.sqrt(100 / 3) + 1e-6;
    expectClose(grpo([[10], [0, 0]]), [[20 / 3 / std], [-10 / 3 / std, -10 / 3 / std]]);
  });

  it("GRPO over episodes: one value each", () => {
    // Values 10, 0: mean 5, unbiased variance 50.
    const a = 5 / (Math.sqrt(50) + 1e-6);
    expectClose(grpo([[10], [0, 0]], "episode"), [[a], [-a, -a]]);
    expect(grpo([[10], [0, 0]], "episode", "mean")).toEqual([[5], [-5, -5]]);
    // An episode's value is the mean over its steps: 1 and 4.
    expect(grpo([[0, 2], [4]], "episode", "mean")).toEqual([[-2.5, -0.5], [1.5]]);
  });

  it("RLOO: each against the mean of the others", () => {
    expectClose(rloo([[3], [1], [2]]), [[1.5], [-1.5], [0]]);
    expectClose(rloo([[10], [0, 0]], "episode"), [[10], [-10, -10]]);
    // Others' means: (0 + 3) / 2, (10 + 3) / 2 and (10 + 0) / 2, however many steps they have.
    const table = [[10, 10], [0, 0, 0], [2, 4], []];
    expectClose(rloo(table), [[8.5, 8.5], [-6.5, -6.5, -6.5], [-3, -1], []]);
    expect(rloo([[10, 9], [4]])).toEqual([[6, 5], [-5.5]]);
    expect(rloo([[3, 4], []])).toEqual([[3, 4], []]);
    // The reference's leaves out one step of five: the episode's other steps stay in the baseline.
    expectClose(
      rloo(
        [
          [10, 10],
          [0, 0, 0],
        ],
        "step",
      )[0]!.map((a) => [a]),
      [[7.5], [7.5]],
    );
  });

  it("RLOO: an episode's own return is not in its baseline", () => {
    const others = [[4], [1, 3]];
    const own = (scores: readonly number[]) => rloo([scores, ...others])[0]!;
    for (const s of [0, 7, 100]) expectClose([own([s, s + 1])], [[s - 3, s - 2]]);
    const biased = (s: number) => rloo([[s, s], ...others], "step")[0]![0]! - s;
    expect(biased(100)).not.toBeCloseTo(biased(0), 3);
  });

  it("GiGPO: returns discount backwards", () => {
    expect(discountedReturns([0, 0, 8], 0.5)).toEqual([2, 4, 8]);
    expect(discountedReturns([], 0.5)).toEqual([]);
  });

  it("GiGPO: steps before the same observation are compared, others get 0", () => {
    const returns = [
      [4, 8],
      [0, 0],
    ];
    const anchors = [
      ["hall", "kitchen"],
      ["hall", "cellar"],
    ];
    const options = { norm: "mean", similarity: 1 } as const;
    expect(stepAdvantages(returns, anchors, options)).toEqual([
      [2, 0],
      [-2, 0],
    ]);
    const won = [8, 8];
    const lost = [0, 0];
    const both = gigpo(
      { scores: [won, lost], returns, anchors },
      { ...options, per: "step", stepWeight: 0.5 },
    );
    expect(both).toEqual([
      [5, 4],
      [-5, -4],
    ]);
    const a = 2 / (Math.sqrt(8) + 1e-6);
    expectClose(stepAdvantages(returns, anchors, { norm: "mean-std", similarity: 1 }), [
      [a, 0],
      [-a, 0],
    ]);
  });

  it("GiGPO: an anchor that occurs twice in one episode counts twice", () => {
    const returns = [[1, 2], [6]];
    const anchors = [["hall", "hall"], ["hall"]];
    expect(stepAdvantages(returns, anchors, { norm: "mean", similarity: 1 })).toEqual([
      [-2, -1],
      [3],
    ]);
  });
});

describe.each(Object.entries(ESTIMATORS))("%s", (_, estimate) => {
  it("sums to 0 over what its statistics are taken over", () => {
    fc.assert(
      fc.property(anyTable, anyUnit, (table, per) => {
        fc.pre(statisticsOver(table, per).length > 1);
        const advantages = estimate(table, per);
        const values = statisticsOver(advantages, per);
        expect(Math.abs(sum(values))).toBeLessThan(1e-8 * (1 + sum(values.map(Math.abs))));
      }),
    );
  });

  it("gives exactly 0 if all scores are equal", () => {
    fc.assert(
      fc.property(anyTable, anyUnit, fc.double({ min: -10, max: 10, noNaN: true }), (t, per, s) => {
        const table = t.map((steps) => steps.map(() => s));
        fc.pre(statisticsOver(table, per).length > 1);
        expect(
          estimate(table, per)
            .flat()
            .every((a) => a === 0),
        ).toBe(true);
      }),
    );
  });

  it("gives a single value its own score", () => {
    expect(estimate([[3]], "step")).toEqual([[3]]);
    expect(estimate([[3, 4]], "episode")).toEqual([[3, 4]]);
    expect(estimate([[], [3], []], "step")).toEqual([[], [3], []]);
    expect(estimate([], "step")).toEqual([]);
    expect(estimate([[]], "episode")).toEqual([[]]);
  });

  it("does not depend on the order of episodes, nor on a constant added to all", () => {
    fc.assert(
      fc.property(anyTable, anyUnit, anyScore, (table, per, shift) => {
        fc.pre(statisticsOver(table, per).length > 1);
        const plain = estimate(table, per);
        expectClose(estimate(table.toReversed(), per), plain.toReversed());
        const shifted = table.map((steps) => steps.map((s) => s + shift));
        expectClose(estimate(shifted, per), plain, 1e-6);
      }),
    );
  });
});

describe("duplicating every episode", () => {
  const doubled = (table: StepTable) => [...table, ...table];

  it("leaves mean-only GRPO unchanged and shrinks RLOO towards it", () => {
    fc.assert(
      fc.property(anyTable, anyUnit, (table, per) => {
        const n = statisticsOver(table, per).length;
        fc.pre(n > 1);
        expectClose(grpo(doubled(table), per, "mean"), doubled(grpo(table, per, "mean")));
        const factor = (2 * (n - 1)) / (2 * n - 1);
        const expected = doubled(rloo(table, per)).map((steps) => steps.map((a) => a * factor));
        expectClose(rloo(doubled(table), per), expected);
      }),
    );
  });

  it("stretches GRPO by the change of the unbiased denominator", () => {
    fc.assert(
      fc.property(anyTable, anyUnit, (table, per) => {
        const values = statisticsOver(table, per);
        fc.pre(variance(values) > 1e-3);
        const n = values.length;
        const factor = Math.sqrt((2 * n - 1) / (2 * (n - 1)));
        const expected = doubled(grpo(table, per)).map((steps) => steps.map((a) => a * factor));
        expectClose(grpo(doubled(table), per), expected, 1e-4);
      }),
    );
  });
});

describe("scaling all scores", () => {
  const scale = (table: StepTable, factor: number) =>
    table.map((steps) => steps.map((s) => s * factor));

  it("leaves GRPO unchanged (except for the 1e-6) and scales RLOO", () => {
    fc.assert(
      fc.property(anyTable, anyUnit, fc.integer({ min: 1, max: 50 }), (table, per, factor) => {
        fc.pre(variance(statisticsOver(table, per)) > 1e-2);
        expectClose(grpo(scale(table, factor), per), grpo(table, per), 1e-4);
        expectClose(rloo(scale(table, factor), per), scale(rloo(table, per), factor));
      }),
    );
  });
});

describe("gigpo", () => {
  const anyGroup = fc.array(
    fc.array(fc.tuple(anyScore, anyScore, fc.constantFrom("hall", "hall!", "kitchen", "attic")), {
      maxLength: 5,
    }),
    { maxLength: 5 },
  );
  const parts = (group: readonly (readonly (readonly [number, number, string])[])[]) => ({
    scores: group.map((steps) => steps.map(([s]) => s)),
    returns: group.map((steps) => steps.map(([, r]) => r)),
    anchors: group.map((steps) => steps.map(([, , anchor]) => anchor)),
  });
  const anyOptions: fc.Arbitrary<GigpoOptions> = fc.record({
    per: anyUnit,
    norm: anyNorm,
    stepWeight: fc.constantFrom(0, 0.5, 1),
    similarity: fc.constantFrom(0.5, 0.8, 1),
  });

  it("never yields NaN, and its step term sums to 0 over every anchor", () => {
    fc.assert(
      fc.property(anyGroup, anyOptions, (group, options) => {
        const { returns, anchors, ...rest } = parts(group);
        const all = gigpo({ returns, anchors, ...rest }, options);
        expect(all.flat().every(Number.isFinite)).toBe(true);
        const steps = stepAdvantages(returns, anchors, { ...options, similarity: 1 }).flat();
        for (const anchor of new Set(anchors.flat())) {
          const own = steps.filter((_, i) => anchors.flat()[i] === anchor);
          expect(Math.abs(sum(own))).toBeLessThan(1e-8 * (1 + sum(own.map(Math.abs))));
          if (own.length === 1) expect(own[0]).toBe(0);
        }
      }),
    );
  });

  it("with exact anchors does not depend on the order of episodes", () => {
    fc.assert(
      fc.property(anyGroup, anyOptions, (group, options) => {
        const exact = { ...options, similarity: 1 };
        const backwards = gigpo(parts(group.toReversed()), exact);
        expectClose(backwards, gigpo(parts(group), exact).toReversed(), 1e-6);
      }),
    );
  });

  it("with ω = 0 is GRPO", () => {
    fc.assert(
      fc.property(anyGroup, anyOptions, (group, options) => {
        const all = gigpo(parts(group), { ...options, stepWeight: 0 });
        expect(all).toEqual(grpo(parts(group).scores, options.per, options.norm));
      }),
    );
  });
});

describe("statistics", () => {
  it("are 0 for empty lists and exact for equal values", () => {
    expect([mean([]), variance([]), variance([5])]).toEqual([0, 0, 0]);
    expect(mean([0.1, 0.1, 0.1])).toBe(0.1);
    expect(variance([1, 2, 3, 4])).toBeCloseTo(5 / 3, 12);
  });
});
