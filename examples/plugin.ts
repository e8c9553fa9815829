/**
 * A plugin: an advantage estimator, losses and a policy of your own.
 *
 *   pawl train --plugin examples/plugin.ts --advantage best --objective.loss bounded --paw.loss squared
 *   pawl rollout --plugin examples/plugin.ts --policy curious
 */
import {
  commonSettings,
  createRandom,
  definePlugin,
  expression,
  groupEstimator,
  mapSteps,
  type PolicyKind,
} from "pawl";
import { z } from "zod";

const { clamp, exp, input, logprob, mul, neg, sub } = expression;

/** How far each step fell behind the best of its group: A = s − max(s) + margin. */
const best = groupEstimator(
  z.strictObject({
    name: z.literal("best"),
    ...commonSettings,
    margin: z.number().min(0).default(0.5).describe("added to every advantage"),
  }),
  (scores, { margin }) => {
    const highest = Math.max(...scores.flat());
    return mapSteps(scores, (score) => score - highest + margin);
  },
);

/** REINFORCE with a bounded probability ratio: −A · clamp(p / p_old, 0, bound). */
const bounded = {
  title: "REINFORCE with a bounded ratio",
  settings: { bound: z.number().gt(1).default(2).describe("largest ratio of the bounded loss") },
  token: ({ bound }: { bound: number }) => {
    const ratio = exp(sub(logprob, input("oldLogprob")));
    return neg(mul(input("advantage"), clamp(ratio, 0, bound)));
  },
};

/** The squared error of an observation token's probability: (1 − p)². */
const miss = sub(1, exp(logprob));
const squared = { title: "squared error", settings: {}, token: () => mul(miss, miss) };

/** Tries actions that it has not tried yet. */
const curious: PolicyKind = {
  name: "curious",
  options: z.strictObject({}),
  create: () => ({
    name: "curious",
    batch: 1,
    act: async (situations) =>
      situations.map(({ admissible = [], steps, seed, format }) => {
        const tried = new Set(steps.map((step) => step.action));
        const fresh = admissible.filter((action) => !tried.has(action));
        return { response: format(createRandom(seed).pick(fresh.length > 0 ? fresh : admissible)) };
      }),
  }),
};

export default definePlugin({
  estimators: [best],
  policyLosses: { bounded },
  worldLosses: { squared },
  policies: [curious],
});
