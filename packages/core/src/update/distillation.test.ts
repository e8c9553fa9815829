import { expect, it } from "vitest";
import { prepareUpdate } from "./update.js";
import { groupsOf } from "./update-testing.js";

const groups = groupsOf([
  [{ steps: [{ action: [-1, -2] }, { action: [-0.5] }] }, { steps: [{ action: [-3] }] }],
]);
const advantages = { advantages: [[[1, -1], [0.5]]] };
// A prompt of two tokens comes before each action.
const teacherLogprobs = [
  [0, 0, -0.5, -4],
  [0, 0, -0.5],
  [0, 0, -1],
];

const advantagesOf = (given: object, results: object = {}) => {
  const { sequences, summary } = prepareUpdate(groups, advantages, {
    ...{ paw: { loss: "off" }, maxReturn: 1, ...given },
    results: { teacherLogprobs, ...results },
  });
  const learnt = sequences.flatMap(({ inputs }) =>
    Array.from(inputs.advantage!).filter((_, at) => inputs.policyWeight![at] !== 0),
  );
  return { learnt, distance: summary.teacherDistance };
};

it("an action's tokens are worth what the teacher thinks of each, more than the policy did", () => {
  const { learnt, distance } = advantagesOf({ distillation: { weight: 1, rewards: false } });
  // On average 0.125 more than the policy did.
  expect(learnt).toEqual([0.5, -2, 0, 2].map((difference) => difference - 0.125));
  expect(distance).toBe(-0.125);
});

it("with rewards that is added to the estimator's advantages, by its weight", () => {
  const { learnt } = advantagesOf({ distillation: { weight: 0.5, rewards: true } });
  expect(learnt).toEqual([1 + 0.25, 1 - 1, -1 + 0, 0.5 + 1].map((x) => x - 0.0625));
});

it("compares with the policy that learns, where another sampler acted", () => {
  const oldLogprobs = [
    [0, 0, -1.5, -2],
    [0, 0, -1],
    [0, 0, -1],
  ];
  const how = { distillation: { weight: 1, rewards: false } };
  expect(advantagesOf(how, { oldLogprobs }).learnt).toEqual([1, -2, 0.5, 0].map((x) => x + 0.125));
});

it("its mean gradient is that of −KL(policy ‖ teacher)", () => {
  const softmax = (x: readonly number[]) => {
    const sum = x.reduce((total, one) => total + Math.exp(one), 0);
    return x.map((one) => Math.exp(one) / sum);
  };
  const [scores, teacher] = [[0.3, -1, 0.7], softmax([1, 0, -1])];
  const policy = softmax(scores);
  const kl = (x: readonly number[]) =>
    softmax(x).reduce((sum, p, i) => sum + p * Math.log(p / teacher[i]!), 0);
  for (let i = 0; i < 3; i++) {
    const moved = (by: number) => scores.map((one, at) => (at === i ? one + by : one));
    const slope = (kl(moved(1e-5)) - kl(moved(-1e-5))) / 2e-5;
    // Over all tokens that might be sampled: their advantage times d log p / d score.
    const mean = policy.reduce((sum, p, a) => {
      const advantage = Math.log(teacher[a]!) - Math.log(p);
      return sum + p * advantage * ((a === i ? 1 : 0) - policy[i]!);
    }, 0);
    expect(mean).toBeCloseTo(-slope, 8);
  }
});
