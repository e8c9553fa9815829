/** The curves of training: which metrics, in which order, and what they mean. */

/** One metric over a run. */
interface Curve {
  readonly metric: string;
  readonly title: string;
  readonly note: string;
  /** A fraction between 0 and 1. */
  readonly percent?: boolean;
  /** Few points, far apart: each gets a dot. */
  readonly dots?: boolean;
}

/** Curves under a heading. */
export interface CurveSection {
  readonly heading: string;
  readonly curves: readonly Curve[];
}

/** The curves that these metrics make, under their headings; metrics without a name of ours come last. */
export function curveSections(metrics: readonly string[]): readonly CurveSection[] {
  const present = new Set(metrics);
  const known = [{ heading: "Evaluation", curves: evaluationCurves(metrics) }, ...FIXED].map(
    ({ heading, curves }) => ({
      heading,
      curves: curves.filter(({ metric }) => present.has(metric)),
    }),
  );
  const shown = new Set(known.flatMap(({ curves }) => curves.map(({ metric }) => metric)));
  const other = metrics
    .filter((metric) => !shown.has(metric) && !OTHERS_SHOWN.test(metric))
    .sort()
    .map((metric): Curve => ({ metric, title: metric, note: "" }));
  return [...known, { heading: "Other metrics", curves: other }].filter(
    ({ curves }) => curves.length > 0,
  );
}

/** Shown as tables, in the chart of success, or parts of what is shown. */
const OTHERS_SHOWN = /^(update|seconds\..*|eval\..*|train\.success(\..*)?)$/;

/** The splits that were evaluated. */
export function splitsOf(metrics: readonly string[]): readonly string[] {
  const found = metrics.flatMap((name) => /^eval\.(.+)\.success$/.exec(name)?.[1] ?? []);
  return [...new Set(found)];
}

function evaluationCurves(metrics: readonly string[]): readonly Curve[] {
  return splitsOf(metrics).map((split) => ({
    metric: `eval.${split}.score`,
    title: `Score on ${split}`,
    note: "mean score of the episodes",
    dots: true,
  }));
}

const FIXED: readonly CurveSection[] = [
  {
    heading: "Training episodes",
    curves: [
      { metric: "train.return", title: "Return", note: "mean sum of rewards, without penalties" },
      { metric: "train.steps", title: "Episode length", note: "mean steps" },
      { metric: "train.responseTokens", title: "Response length", note: "mean tokens per action" },
      {
        metric: "train.invalid",
        title: "Invalid actions",
        note: "malformed or not executable, share of steps",
        percent: true,
      },
      {
        metric: "train.trained",
        title: "Tokens to be trained",
        note: "share of what an agent's model sampled",
        percent: true,
      },
    ],
  },
  {
    heading: "World model",
    curves: [
      {
        metric: "world.lambda",
        title: "Balance λ",
        note: "weight of world modelling, mean over groups",
        percent: false,
      },
      { metric: "world.loss", title: "World-model loss", note: "as it enters the objective" },
      {
        metric: "world.clipped",
        title: "Clipped share",
        note: "observation tokens that the mask drops",
        percent: true,
      },
      {
        metric: "world.p",
        title: "Mean p",
        note: "probability of the observation tokens",
        percent: true,
      },
    ],
  },
  {
    heading: "Responses of a world model (WM-SFT)",
    curves: [
      { metric: "wm.loss", title: "Loss", note: "per token of the training responses" },
      {
        metric: "wm.exactMatch",
        title: "Exact match",
        note: "test responses predicted word for word",
        percent: true,
        dots: true,
      },
      {
        metric: "wm.f1",
        title: "Word F1",
        note: "of test responses",
        percent: true,
        dots: true,
      },
    ],
  },
  {
    heading: "Predictions of the next state (RWML)",
    curves: [
      { metric: "rwml.reward", title: "Reward", note: "mean over the training predictions" },
      {
        metric: "heldOut.reward",
        title: "Held-out reward",
        note: "greedy predictions on held-out episodes",
        dots: true,
      },
      {
        metric: "heldOut.sampled.reward",
        title: "Held-out reward of samples",
        note: "predictions sampled as in training",
        dots: true,
      },
      {
        metric: "heldOut.foreseen.some",
        title: "Sometimes correct",
        note: "correct in some samples only: what is left to learn",
        percent: true,
        dots: true,
      },
      {
        metric: "heldOut.exact",
        title: "Held-out exact match",
        note: "the same, word for word",
        percent: true,
        dots: true,
      },
      {
        metric: "heldOut.loss.actions",
        title: "Loss on old actions",
        note: "per held-out token: a rise means forgetting how to act",
        dots: true,
      },
      {
        metric: "heldOut.loss.states",
        title: "Loss on states",
        note: "per held-out token",
        dots: true,
      },
    ],
  },
  {
    heading: "Policy",
    curves: [
      { metric: "policy.loss", title: "Policy loss", note: "clipped policy gradient" },
      { metric: "policy.kl", title: "KL to the reference", note: "k3 estimate per action token" },
      {
        metric: "policy.actionEntropy",
        title: "Action entropy",
        note: "what selection is based on, mean over steps",
      },
      { metric: "policy.entropy", title: "Token entropy", note: "mean over action tokens" },
      {
        metric: "policy.clipped",
        title: "Clipped ratios",
        note: "share of action tokens",
      },
      { metric: "policy.valueError", title: "Value error", note: "of the critic, squared" },
      {
        metric: "critic.explained",
        title: "Critic",
        note: "share of the variance of returns it explains",
      },
    ],
  },
  {
    heading: "Gradients",
    curves: [
      {
        metric: "gradNorm",
        title: "Gradient norm",
        note: "before clipping, mean over optimiser steps",
      },
      { metric: "gradient.policy", title: "Policy gradient", note: "its norm, whole update" },
      {
        metric: "gradient.world",
        title: "World-model gradient",
        note: "its norm, whole update",
      },
      { metric: "gradient.cosine", title: "Cosine of the two", note: "1: same direction" },
      { metric: "learningRate", title: "Learning rate", note: "at the end of the update" },
    ],
  },
  {
    heading: "Phases",
    curves: [
      { metric: "seconds.rollout", title: "Playing", note: "seconds of the update" },
      { metric: "seconds.score", title: "Scoring", note: "seconds: values, reference, entropies" },
      { metric: "seconds.measure", title: "Measuring gradients", note: "seconds" },
      { metric: "seconds.learn", title: "Learning", note: "seconds" },
    ],
  },
  {
    heading: "Resources",
    curves: [
      { metric: "memory.mib", title: "Memory", note: "largest resident size of the process, MiB" },
      { metric: "train.tokens", title: "Tokens", note: "learnt from in the update" },
    ],
  },
];
