import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { settingsOf } from "../config/settings.js";
import type { Episode, Group } from "../rollout/episode.js";
import { type AdvantageOptions, advantageOptions, computeAdvantages } from "./advantages.js";
import { discountedReturns, type GigpoOptions, gigpo, stepAdvantages } from "./gigpo.js";
import { grpo } from "./grpo.js";
import { rloo } from "./rloo.js";
import { type ScoredEpisode, scores } from "./scores.js";
import { mean, type StepTable, statisticsOver, variance } from "./statistics.js";

interface Sketch {
  readonly rewards: readonly number[];
  readonly invalid?: readonly number[];
  /** Of the invalid ones, those with a malformed response. */
  readonly malformed?: readonly number[];
  readonly observations?: readonly string[];
  readonly broken?: boolean;
  /** When each step was taken, and what it acted on. */
  readonly times?: readonly number[];
  readonly seen?: readonly (string | undefined)[];
}

/** A group of episodes that all start in the hall. */
function groupOf(index: number, sketches: readonly Sketch[]): Group {
  const task = { id: `train/${index}`, split: "train", type: "test" };
  return {
    index,
    task,
    episodes: sketches.map(
      (sketch, attempt): Episode => ({
        task,
        group: index,
        attempt,
        seed: 0,
        policy: "test",
        goal: "",
        firstObservation: "hall",
        steps: sketch.rewards.map((reward, t) => ({
          prompt: [],
          response: "",
          action: "",
          wellFormed: !sketch.malformed?.includes(t),
          valid: !sketch.invalid?.includes(t),
          observation: sketch.observations?.[t] ?? `room ${attempt}.${t}`,
          reward,
          ...(sketch.times && { time: sketch.times[t]! }),
          ...(sketch.seen?.[t] !== undefined && { seen: sketch.seen[t] }),
        })),
        return: sketch.rewards.reduce((a, b) => a + b, 0),
        success: false,
        stop: sketch.broken ? "broken" : "done",
      }),
    ),
  };
}

const options = (given: object): AdvantageOptions => advantageOptions().parse(given);
const advantagesOf = (group: Group, given: object) =>
  computeAdvantages([group], options(given)).advantages[0]!;

describe("advantageOptions", () => {
  it("default to GRPO as in the reference implementation", () => {
    expect(advantageOptions().parse(undefined)).toEqual({
      name: "grpo",
      per: "step",
      norm: "mean-std",
      penalty: 0.1,
      penaltyPlace: "inside",
      penaltyOn: "invalid",
    });
    expect(options({ name: "gigpo" })).toMatchObject({ gamma: 0.95, stepWeight: 1, similarity: 1 });
    expect(options({ name: "rloo" })).toMatchObject({ per: "other-episodes" });
    expect(() => options({ name: "grpo", per: "other-episodes" })).toThrow();
    expect(options({ name: "ppo" })).toMatchObject({ gamma: 1, lambda: 1, scope: "response" });
  });

  it("can be set one by one, with help", () => {
    const settings = settingsOf(advantageOptions(), ["advantage"]);
    expect(settings[0]).toMatchObject({
      flag: "--advantage.name",
      choices: ["grpo", "rloo", "gigpo", "tree", "ppo"],
    });
    for (const setting of settings) expect(setting.description).not.toBe("");
  });

  it("reject settings that an estimator does not know", () => {
    expect(() => options({ name: "rloo", gamma: 1 })).toThrow(/gamma/);
    expect(() => options({ name: "ppo", per: "step" })).toThrow(/per/);
    expect(() => options({ name: "gigpo", similarity: 0 })).toThrow();
  });
});

describe("limits of the settings", () => {
  const LIMITS = [
    ["grpo", "penalty", [0, 0.5, 2], [-0.1]],
    ["gigpo", "gamma", [0, 0.5, 1], [-0.1, 1.1]],
    ["gigpo", "stepWeight", [0, 0.5, 3], [-0.1]],
    ["gigpo", "similarity", [0.1, 1], [0, -1, 1.1]],
    ["ppo", "gamma", [0, 0.5, 1], [-0.1, 1.1]],
    ["ppo", "lambda", [0, 0.5, 1], [-0.1, 1.1]],
  ] as const;
  it.each(LIMITS)("%s.%s", (name, setting, fine, refused) => {
    for (const value of fine) expect(options({ name, [setting]: value })).toHaveProperty(setting);
    for (const value of refused) expect(() => options({ name, [setting]: value })).toThrow();
  });
});

describe("an episode whose steps are not listed in the order of time", () => {
  // The agent asks, starts a helper, hears it, and only then goes on: the helper is listed last.
  const listed: Sketch = {
    rewards: [0, 0, 8, 0],
    times: [0, 2, 3, 1],
    observations: ["ask", "heard", "", ""],
    seen: [undefined, undefined, undefined, "help"],
  };
  const taken: Sketch = {
    rewards: [0, 0, 0, 8],
    observations: ["ask", "help", "", ""],
    seen: [undefined, "help", "ask", "heard"],
  };
  const other: Sketch = { rewards: [0, 2], observations: ["ask", ""] };
  const another: Sketch = { rewards: [0, 4], seen: [undefined, "help"] };
  const inTime = (steps: readonly unknown[]) => [0, 3, 1, 2].map((at) => steps[at]);

  it("has GiGPO's returns and anchors of that order", () => {
    const given = { name: "gigpo", gamma: 0.5, norm: "mean", per: "episode" };
    const [steps] = advantagesOf(groupOf(0, [listed, other, another]), given);
    const [expected] = advantagesOf(groupOf(0, [taken, other, another]), given);
    expect(inTime(steps!)).toEqual(expected);
    // By hand: the helper's return is 8·γ², that of the other step with its anchor 4.
    const episode = 8 - (8 + 2 + 4) / 3;
    expect(steps![3]).toBeCloseTo(episode + (2 - (2 + 4) / 2), 10);
    expect(steps![1]).toBeCloseTo(episode + (4 - (4 + 2) / 2), 10);
  });

  it("has PPO's advantages and targets of that order", () => {
    const given = options({ name: "ppo", scope: "episode", gamma: 0.5, lambda: 0.9 });
    const values = [[1], [2, 2.5], [3], [4, 5]];
    const ordered = computeAdvantages([groupOf(0, [taken])], given, [
      [[0, 3, 1, 2].map((at) => values[at]!)],
    ]);
    const computed = computeAdvantages([groupOf(0, [listed])], given, [[values]]);
    expect(inTime(computed.advantages[0]![0]!)).toEqual(ordered.advantages[0]![0]);
    expect(inTime(computed.returns![0]![0]!)).toEqual(ordered.returns![0]![0]);
  });
});

describe("computeAdvantages", () => {
  it("keeps broken episodes out of the statistics, but in the table", () => {
    const sketches: Sketch[] = [{ rewards: [10] }, { rewards: [0, 0] }];
    const broken = { rewards: [1000], broken: true };
    for (const name of ["grpo", "rloo", "gigpo"]) {
      const [first, second] = advantagesOf(groupOf(0, sketches), { name });
      const mixed = groupOf(0, [sketches[0]!, broken, sketches[1]!]);
      expect(advantagesOf(mixed, { name })).toEqual([first, [], second]);
    }
    expect(advantagesOf(groupOf(0, [broken]), { name: "grpo" })).toEqual([[]]);
  });

  it("in a group of failures, an inside penalty is blown up, one after is not, none is 0", () => {
    const failures = groupOf(0, [{ rewards: [0, 0], invalid: [1] }, { rewards: [0, 0] }]);
    const invalid = (given: object) => advantagesOf(failures, { name: "grpo", ...given })[0]![1];
    expect(invalid({})).toBeCloseTo(-1.5, 3);
    expect(invalid({ penalty: 0.001 })).toBeCloseTo(-1.5, 2);
    expect(invalid({ penaltyPlace: "after" })).toBe(-0.1);
    expect(invalid({ penalty: 0 })).toBe(0);
  });

  it("RLOO over steps and over episodes is as in recorded runs", () => {
    const group = groupOf(0, [{ rewards: [0, 10], invalid: [0] }, { rewards: [0] }]);
    const at = (per: string) => advantagesOf(group, { name: "rloo", per });
    // Scores 9.9, 10 and 0: mean 19.9 / 3, times 3/2; by episode 9.95 and 0, times 2.
    [
      [4.9, 5.05, -9.95],
      [9.85, 10.05, -9.95],
    ].forEach((expected, i) => {
      const found = at(["step", "episode"][i]!).flat() as number[];
      for (const [t, a] of expected.entries()) expect(found[t]).toBeCloseTo(a, 12);
    });
  });

  it("a penalty on malformed responses spares refused actions, with every estimator", () => {
    const group = groupOf(0, [{ rewards: [0, 0, 0], invalid: [1, 2], malformed: [2] }]);
    const finesOf = (name: string, penaltyOn: string) => {
      const given = { name, penaltyOn, penaltyPlace: "after" };
      const values = [[[[0], [0], [0]]]];
      return computeAdvantages([group], options(given), values).advantages.flat(3);
    };
    for (const name of ["grpo", "rloo", "gigpo", "ppo"]) {
      expect(finesOf(name, "malformed")).toEqual([0, 0, -0.1]);
      expect(finesOf(name, "invalid")).toEqual([0, -0.1, -0.1]);
    }
  });

  it("RLOO and GiGPO subtract an after penalty once", () => {
    const failures = groupOf(0, [{ rewards: [0, 0], invalid: [1] }, { rewards: [0, 0] }]);
    for (const name of ["rloo", "gigpo"]) {
      const given = { name, penaltyPlace: "after" };
      expect(advantagesOf(failures, given)).toEqual([
        [0, -0.1],
        [0, 0],
      ]);
    }
  });

  it("GiGPO compares the steps that acted on the same observation", () => {
    const group = groupOf(0, [
      { rewards: [0, 8], observations: ["kitchen", "end"] },
      { rewards: [0, 0], observations: ["cellar", "end"] },
    ]);
    const given = { name: "gigpo", norm: "mean", gamma: 0.5 };
    // Episode term ±4; in the hall G is 4 and 0, so the step term is ±2; elsewhere 0.
    expect(advantagesOf(group, given)).toEqual([
      [6, 4],
      [-6, -4],
    ]);
    // The reference subtracts the penalty from both terms: −0.1·3/4 and −0.1/2 for the step itself.
    const fined = groupOf(0, [
      { rewards: [0, 8], observations: ["kitchen", "end"], invalid: [0] },
      { rewards: [0, 0], observations: ["cellar", "end"] },
    ]);
    expect(advantagesOf(fined, given)[0]![0]).toBeCloseTo(6 - 0.075 - 0.05, 12);
  });

  it("groups do not influence each other", () => {
    const one = groupOf(0, [{ rewards: [10] }, { rewards: [0] }]);
    const two = groupOf(1, [{ rewards: [3] }, { rewards: [5, 5] }]);
    for (const name of ["grpo", "rloo", "gigpo"]) {
      const both = computeAdvantages([one, two], options({ name })).advantages;
      expect(both).toEqual([advantagesOf(one, { name }), advantagesOf(two, { name })]);
    }
  });

  it("PPO whitens over the update, and gives targets for the critic", () => {
    const groups = [
      groupOf(0, [{ rewards: [0, 10], invalid: [0] }]),
      groupOf(1, [{ rewards: [9], broken: true }, { rewards: [0] }]),
    ];
    const values = [[[[1, 2], [3]]], [[], [[4]]]];
    const plain = computeAdvantages(groups, options({ name: "ppo" }), values);
    expect(plain.returns).toEqual([[[[9.9, 9.9], [10]]], [[], [[0]]]]);
    const flat = plain.advantages.flat(3) as number[];
    expect(flat).toHaveLength(4);
    expect(flat.reduce((a, b) => a + b, 0)).toBeCloseTo(0, 9);
    expect(flat.reduce((a, b) => a + b * b, 0) / 3).toBeCloseTo(1, 6);

    const turns = computeAdvantages(groups, options({ name: "ppo", scope: "episode" }), values);
    expect(turns.returns![0]![0]![0]![0]).toBeCloseTo(9.9, 12);
    expect(turns.returns![0]![0]![1]).toEqual([10]);

    const late = { name: "ppo", penaltyPlace: "after" };
    const free = computeAdvantages(groups, options({ ...late, penalty: 0 }), values).advantages;
    const fined = computeAdvantages(groups, options(late), values).advantages;
    const difference = (fined.flat(3) as number[]).map((a, i) => a - (free.flat(3)[i] as number));
    [-0.1, -0.1, 0, 0].forEach((d, i) => {
      expect(difference[i]).toBeCloseTo(d, 12);
    });
  });

  it("says what is missing", () => {
    const group = groupOf(0, [{ rewards: [1, 2] }]);
    expect(() => computeAdvantages([group], options({ name: "ppo" }))).toThrow(/critic's value/);
    expect(() => computeAdvantages([group], options({ name: "ppo" }), [[[[1]]]])).toThrow(
      /episode 0 of group 0 has 2 steps, but the critic's values are for 1/,
    );
    const odd = groupOf(3, [{ rewards: [1, Number.NaN] }]);
    expect(() => advantagesOf(odd, { name: "grpo" })).toThrow(
      /reward of step 1 of attempt 0 at task train\/3 is NaN/,
    );
    const first = groupOf(3, [{ rewards: [Number.POSITIVE_INFINITY] }]);
    expect(() => advantagesOf(first, { name: "grpo" })).toThrow(/reward of step 0/);
  });

  it("never yields NaN", () => {
    const anySketch = fc.record({
      rewards: fc.array(fc.constantFrom(0, 0, 1, 10, -3.3), { maxLength: 4 }),
      invalid: fc.subarray([0, 1, 2, 3]),
      observations: fc.constant(["hall", "kitchen", "hall", "kitchen"]),
      broken: fc.boolean(),
    });
    const anyOptions = fc.oneof(
      fc.record({
        name: fc.constantFrom("grpo", "gigpo"),
        per: fc.constantFrom("step", "episode"),
        penaltyPlace: fc.constantFrom("inside", "after"),
      }),
      fc.record({
        name: fc.constant("rloo"),
        per: fc.constantFrom("other-episodes", "step", "episode"),
        penaltyPlace: fc.constantFrom("inside", "after"),
      }),
      fc.record({ name: fc.constant("ppo"), scope: fc.constantFrom("response", "episode") }),
    );
    fc.assert(
      fc.property(fc.array(fc.array(anySketch), { maxLength: 3 }), anyOptions, (all, given) => {
        const groups = all.map((sketches, g) => groupOf(g, sketches));
        const values = all.map((sketches) =>
          sketches.map(({ rewards, broken }) => (broken ? [] : rewards.map(() => [0.5, 1]))),
        );
        const { advantages } = computeAdvantages(groups, options(given), values);
        expect((advantages.flat(3) as number[]).every(Number.isFinite)).toBe(true);
        advantages.forEach((episodes, g) => {
          expect(episodes.map((steps) => steps.length)).toEqual(
            all[g]!.map(({ broken, rewards }) => (broken ? 0 : rewards.length)),
          );
        });
      }),
    );
  });
});

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
