/** The curves of a report: which metrics, in which order, and what they mean. */
import { chart } from "./chart.js";
import { type Html, html } from "./html.js";
import type { RunGroup } from "./run-groups.js";
import { seriesOf } from "./series.js";

interface Curve {
  readonly metric: string;
  readonly title: string;
  readonly note: string;
  readonly percent?: boolean;
  readonly dots?: boolean;
}

/** All curves under their headings, except those that no run recorded. */
export function curves(groups: readonly RunGroup[]): Html {
  const sections = [{ heading: "Evaluation", curves: evaluationCurves(groups) }, ...FIXED].map(
    (section) => {
      const charts = section.curves.flatMap(({ metric, ...rest }) => {
        const drawn = chart({ ...rest, series: seriesOf(groups, metric) });
        return drawn === undefined ? [] : [drawn];
      });
      return charts.length === 0
        ? ""
        : html`<h3>${section.heading}</h3><div class="charts">${charts}</div>`;
    },
  );
  return html`${sections}`;
}

/** The splits that some run was evaluated on. */
export function splitsOf(groups: readonly RunGroup[]): readonly string[] {
  const names = groups.flatMap(({ runs }) =>
    runs.flatMap(({ metrics }) => metrics.flatMap((line) => Object.keys(line))),
  );
  const found = names.flatMap((name) => /^eval\.(.+)\.success$/.exec(name)?.[1] ?? []);
  return [...new Set(found)];
}

function evaluationCurves(groups: readonly RunGroup[]): readonly Curve[] {
  return splitsOf(groups).flatMap((split) => [
    {
      metric: `eval.${split}.success`,
      title: `Success on ${split}`,
      note: "share of tasks solved, each tried once",
      percent: true,
      dots: true,
    },
    {
      metric: `eval.${split}.score`,
      title: `Score on ${split}`,
      note: "mean score of the episodes",
      dots: true,
    },
  ]);
}

const FIXED: readonly { readonly heading: string; readonly curves: readonly Curve[] }[] = [
  {
    heading: "Training episodes",
    curves: [
      {
        metric: "train.success",
        title: "Success while training",
        note: "share of episodes solved",
        percent: true,
      },
      { metric: "train.return", title: "Return", note: "mean sum of rewards, without penalties" },
      { metric: "train.steps", title: "Episode length", note: "mean steps" },
      { metric: "train.responseTokens", title: "Response length", note: "mean tokens per action" },
      {
        metric: "train.invalid",
        title: "Invalid actions",
        note: "malformed or not executable, share of steps",
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
        note: "share of observation tokens that the mask drops",
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
      { metric: "gradient.world", title: "World-model gradient", note: "its norm, before the cap" },
      { metric: "gradient.cosine", title: "Cosine of the two", note: "1: same direction" },
    ],
  },
];
