import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { settingsOf } from "../config/settings.js";
import type { Episode, Group } from "../rollout/episode.js";
import { type AdvantageOptions, advantageOptions, computeAdvantages } from "./advantages.js";

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
      choices: ["grpo", "rloo", "gigpo", "ppo"],
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
