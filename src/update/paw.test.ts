/** Selection, balance, weights and targets, each on its own. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { balance, fullEntropy, sampledEntropy, selectTop } from "./paw.js";
import { actionSequences, actionTokens, transitionsOf } from "./transitions.js";
import { withObservation } from "./update.js";
import { groupsOf, ids } from "./update-testing.js";
import { type Countable, minibatchWeights, policyWeights, worldWeights } from "./weights.js";

describe("action entropy", () => {
  it("sampled: minus the mean of q·log q", () => {
    const [a, b] = [0.5, 0.25];
    const expected = -(a * Math.log(a) + b * Math.log(b)) / 2;
    expect(sampledEntropy([a, b].map(Math.log))).toBeCloseTo(expected, 12);
    expect(sampledEntropy([0])).toBe(0);
    expect(sampledEntropy([Number.NEGATIVE_INFINITY, 0])).toBe(0);
    expect(sampledEntropy([])).toBe(0);
  });

  it("full: the mean", () => {
    expect(fullEntropy([1, 2])).toBe(1.5);
    expect(fullEntropy([])).toBe(0);
  });
});

describe("selectTop", () => {
  it("keeps the ⌈α·N⌉ largest, the earlier of ties", () => {
    expect(selectTop([1, 3, 2, 3], 0.5)).toEqual([false, true, false, true]);
    expect(selectTop([1, 1, 1, 1], 0.5)).toEqual([true, true, false, false]);
    expect(selectTop([1, 2, 3], 0.5)).toEqual([false, true, true]);
    expect(selectTop([], 0.5)).toEqual([]);
    expect(selectTop([5, 1], 1)).toEqual([true, true]);
  });

  it("does not round a whole number up", () => {
    const selected = selectTop(new Array(100).fill(0), 0.07);
    expect(0.07 * 100).toBeGreaterThan(7);
    expect(selected.filter(Boolean)).toHaveLength(7);
  });

  it("never leaves out a larger one than it keeps", () => {
    const anyEntropies = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1 });
    fc.assert(
      fc.property(anyEntropies, fc.integer({ min: 1, max: 100 }), (entropies, percent) => {
        const selected = selectTop(entropies, percent / 100);
        const kept = entropies.filter((_, i) => selected[i]);
        const left = entropies.filter((_, i) => !selected[i]);
        expect(kept).toHaveLength(Math.ceil((percent * entropies.length) / 100));
        expect(Math.min(...kept)).toBeGreaterThanOrEqual(Math.max(...left, 0));
      }),
    );
  });
});

describe("balance", () => {
  it("falls from 1 to 0 as the mean return rises to the largest one", () => {
    expect(
      balance(
        [
          [0, 0],
          [10, 0],
          [10, 10],
        ],
        "adaptive",
        [10, 10, 10],
      ),
    ).toEqual([1, 0.5, 0]);
  });

  it("stays within [0, 1], is 0 without episodes, or the fixed number", () => {
    expect(balance([[30], [-5], []], "adaptive", [10, 10, 10])).toEqual([0, 1, 0]);
    expect(balance([[30], [-5], []], 0.3, [10, 10, 10])).toEqual([0.3, 0.3, 0]);
    expect(balance([[1]], 0.3, [0])).toEqual([0.3]);
    expect(balance([[1, 0]], "adaptive", [1])).toEqual([0.5]);
    // A group that wins all there is to win in its task has nothing left to explore.
    expect(
      balance(
        [
          [2, 2],
          [2, 2],
        ],
        "adaptive",
        [2, 8],
      ),
    ).toEqual([0, 0.75]);
    expect(() => balance([[1]], "adaptive", [0])).toThrow(/positive number, but it is 0/);
  });
});

describe("weights", () => {
  const transitions: Countable[] = [
    { group: 0, episode: 0, actionTokens: 2, observationTokens: 4 },
    { group: 0, episode: 1, actionTokens: 3, observationTokens: 2 },
    { group: 0, episode: 1, actionTokens: 1, observationTokens: 0 },
    { group: 2, episode: 0, actionTokens: 4, observationTokens: 5 },
    { group: 3, episode: 0, actionTokens: 2, observationTokens: 0 },
  ];
  const lambdas = [0.5, 9, 1, 1];

  it("of action tokens: token mean, or mean over groups and episodes", () => {
    expect(policyWeights(transitions, "token-mean")).toEqual(new Array(5).fill(1 / 12));
    expect(policyWeights(transitions, "group-mean")).toEqual([1 / 6, 1 / 6, 1 / 6, 1 / 3, 1 / 3]);
    expect(policyWeights([], "token-mean")).toEqual([]);
  });

  it("of observation tokens: λ_g / (|G|·|S_g|·|o|), where an empty group is left out but counted in |G|", () => {
    expect(worldWeights(transitions, lambdas, "group-mean")).toEqual([
      0.5 / (3 * 2 * 4),
      0.5 / (3 * 2 * 2),
      0,
      1 / (3 * 1 * 5),
      0,
    ]);
    expect(worldWeights(transitions, lambdas, "token-mean")).toEqual([
      0.5 / 11,
      0.5 / 11,
      0,
      1 / 11,
      0,
    ]);
  });

  it("of an observation sum to λ_g over a group's share", () => {
    const all = worldWeights(transitions, lambdas, "group-mean");
    const groupSum = (group: number) =>
      transitions.reduce((total, transition, i) => {
        return transition.group === group ? total + all[i]! * transition.observationTokens : total;
      }, 0);
    expect(groupSum(0)).toBeCloseTo(0.5 / 3, 12);
    expect(groupSum(2)).toBeCloseTo(1 / 3, 12);
    expect(groupSum(3)).toBe(0);
  });

  it("of mini-batches average to the update's", () => {
    const sequence = (policyWeight: number[], worldWeight: number[]) => ({
      ids: policyWeight,
      inputs: { policyWeight, worldWeight, advantage: [7, 7] },
    });
    const batches = [
      [sequence([0.25, 0.25], [0, 0]), sequence([0.25, 0], [0, 0.5])],
      [sequence([0.25, 0], [0, 0.125])],
    ];
    const paper = minibatchWeights(batches, "group-mean");
    expect(paper[0]![1]!.inputs).toEqual({
      policyWeight: Float32Array.of(0.5, 0),
      worldWeight: Float32Array.of(0, 1),
      advantage: [7, 7],
    });
    const tokens = minibatchWeights(batches, "token-mean");
    expect(tokens[0]![0]!.inputs.policyWeight![0]).toBeCloseTo(1 / 3, 6);
    expect(tokens[1]![0]!.inputs.policyWeight).toEqual(Float32Array.of(1, 0));
    expect(tokens[1]![0]!.inputs.worldWeight).toEqual(Float32Array.of(0, 0.25));
  });
});

const action = [-1, -2];

describe("transitions", () => {
  const groups = groupsOf([
    [{ steps: [{ action }], broken: true }, { steps: [{ action }, { action: [-3] }] }],
    [{ steps: [] }, { steps: [{ action, observation: 0 }] }],
  ]);

  it("are the steps of unbroken episodes in order, with the positions of their tokens", () => {
    const transitions = transitionsOf(groups);
    expect(transitions.map((t) => [t.group, t.episode, t.step])).toEqual([
      [0, 1, 0],
      [0, 1, 1],
      [1, 1, 0],
    ]);
    expect(transitions.map((t) => [t.actionStart, t.actionEnd])).toEqual([
      [2, 4],
      [2, 3],
      [2, 4],
    ]);
  });

  it("ask an engine for the action tokens, and nest the results", () => {
    const transitions = transitionsOf(groups);
    const sequences = actionSequences(transitions);
    expect(sequences[1]).toEqual({ ids: [110, 111, 210], targets: Uint8Array.of(0, 0, 1) });
    const values = sequences.map(({ ids }) => Float32Array.from(ids));
    expect(actionTokens(groups, transitions, values)).toEqual([
      [[], [[200, 201], [210]]],
      [[], [[200, 201]]],
    ]);
  });

  it("say what is wrong with a step, and where", () => {
    const [group] = groupsOf([[{ steps: [{ action }] }]]);
    const step = group!.episodes[0]!.steps[0]!;
    const broken = (sequence: typeof step.sequence) => () => {
      const { sequence: _, ...bare } = step;
      const steps = [sequence === undefined ? bare : { ...step, sequence }];
      return transitionsOf([{ ...group!, episodes: [{ ...group!.episodes[0]!, steps }] }]);
    };
    const { sequence } = step;
    expect(broken(undefined)).toThrow(/step 0 of attempt 0 at task train\/0 has no tokens/);
    expect(broken({ ...sequence!, spans: sequence!.spans.toReversed() })).toThrow(/in the order/);
    expect(broken({ ...sequence!, logprobs: [-1] })).toThrow(/2 tokens, but 1 log-prob/);
    expect(broken({ ...sequence!, spans: sequence!.spans.slice(0, 1) })).toThrow(
      /an action of one/,
    );
  });
});

describe("withObservation", () => {
  const steps = [{ action }, { action: [-3], observation: 3 }];
  const [, transition] = transitionsOf(groupsOf([[{ steps }]]));
  const whole = [...ids(100, 1, 2), ...ids(200, 1, 1), ...ids(300, 1, 3)];

  it("is the transition up to the end of its observation", () => {
    expect(withObservation(transition!, 100)).toEqual({
      ids: whole,
      observation: { start: 3, end: 6 },
      cut: false,
    });
  });

  it("truncates what does not fit", () => {
    expect(withObservation(transition!, 5)).toEqual({
      ids: whole.slice(0, 5),
      observation: { start: 3, end: 5 },
      cut: true,
    });
    expect(withObservation(transition!, 3)).toEqual({ ids: whole.slice(0, 3), cut: true });
  });
});
