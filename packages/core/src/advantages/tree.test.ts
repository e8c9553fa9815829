import { expect, it } from "vitest";
import type { Branch, Episode, Group } from "../rollout/episode.js";
import { type AdvantageSettings, computeAdvantages, equalGroups } from "./advantages.js";

interface Sketch {
  readonly steps: number;
  readonly return: number;
  readonly branch?: Branch;
  readonly invalid?: readonly number[];
  readonly broken?: boolean;
}

function groupOf(sketches: readonly Sketch[]): Group {
  const task = { id: "train/0", split: "train", type: "test" };
  const step = {
    prompt: [],
    response: "",
    action: "",
    wellFormed: true,
    observation: "",
    reward: 0,
  };
  return {
    ...{ index: 0, task },
    episodes: sketches.map(
      ({ steps, branch, invalid = [], broken, return: earned }, attempt): Episode => ({
        ...{ task, group: 0, attempt, seed: 0, policy: "test", goal: "", firstObservation: "" },
        ...(branch && { branch }),
        steps: Array.from({ length: steps }, (_, t) => ({ ...step, valid: !invalid.includes(t) })),
        ...{ return: earned, success: earned > 0, stop: broken ? "broken" : "done" },
      }),
    ),
  };
}

const advantagesOf = (sketches: readonly Sketch[], given: object = {}) =>
  computeAdvantages([groupOf(sketches)], {
    ...{ name: "tree", penalty: 0, ...given },
  } as AdvantageSettings).advantages[0] as readonly (readonly number[])[];

// Attempt 0 is left before its steps 1 and 3, attempt 1 never: a second tree.
const grown: readonly Sketch[] = [
  { steps: 4, return: 0 },
  { steps: 2, return: 4 },
  { steps: 3, return: 8, branch: { from: 0, step: 1 } },
  { steps: 5, return: 4, branch: { from: 0, step: 3 } },
];

it("gives a shared step the mean return of those that took it, and compares at each branch", () => {
  // V by hand: step 0 is shared by three, steps 1 and 2 by two.
  const values = [
    [4, 2, 2, 0],
    [4, 4],
    [8, 8],
    [4, 4],
  ];
  const mean = values.flat().reduce((a, b) => a + b) / 10;
  const local = [
    [0, 2 - 4, 2 - 4, 0 - 2],
    [0, 0],
    [8 - 4, 8 - 4],
    [4 - 2, 4 - 2],
  ];
  const shared = [0, 0, 1, 3];
  const advantages = advantagesOf(grown, { norm: "mean", branchWeight: 0.5 });
  for (const [e, steps] of values.entries()) {
    const expected = steps.map((value, t) => value - mean + 0.5 * local[e]![t]!);
    expect(advantages[e]!.slice(0, shared[e])).toEqual(Array(shared[e]).fill(0));
    expect(advantages[e]!.slice(shared[e])).toHaveLength(expected.length);
    for (const [t, one] of expected.entries())
      expect(advantages[e]![shared[e]! + t]).toBeCloseTo(one, 12);
  }
  const variance = values.flat().reduce((sum, x) => sum + (x - mean) ** 2, 0) / 9;
  const divided = advantagesOf(grown, { branchWeight: 0.5 });
  expect(divided[0]![3]).toBeCloseTo((0 - mean - 0.5 * 2) / (Math.sqrt(variance) + 1e-6), 12);
});

it("is grpo where nothing branches off, and takes statistics per episode if asked to", () => {
  const plain = grown.map(({ branch: _, ...sketch }) => sketch);
  for (const per of ["step", "episode"] as const)
    expect(advantagesOf(plain, { per })).toEqual(
      computeAdvantages([groupOf(plain)], { name: "grpo", per, penalty: 0 }).advantages[0],
    );
});

it("fines a step once, inside or after, and leaves broken branches out of every mean", () => {
  const fined = [
    { ...grown[0]!, invalid: [0, 3] },
    ...grown.slice(1),
    { steps: 9, return: 99, branch: { from: 0, step: 1 }, broken: true },
  ];
  const [plain, inside, after] = [
    advantagesOf(grown, { norm: "mean" }),
    advantagesOf(fined, { norm: "mean", penalty: 1 }),
    advantagesOf(fined, { norm: "mean", penalty: 1, penaltyPlace: "after" }),
  ];
  expect(after[0]![0]).toBeCloseTo(plain[0]![0]! - 1, 12);
  expect(after[0]![1]).toBeCloseTo(plain[0]![1]!, 12);
  // Two of ten steps are fined: the mean is 0.2 lower.
  expect(inside[0]![0]).toBeCloseTo(plain[0]![0]! - 0.8, 12);
  expect(inside[3]![4]).toBeCloseTo(plain[3]![4]! + 0.2, 12);
  expect(inside[4]).toEqual([]);
});

it("finds nothing to learn where all continuations earned the same", () => {
  const same = grown.map((sketch) => ({ ...sketch, return: 3 }));
  const table = computeAdvantages([groupOf(same)], { name: "tree" });
  expect(equalGroups(table)).toBe(1);
});
