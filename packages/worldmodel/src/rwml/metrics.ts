/** The metrics of an RWML update and of its held-out measurements, by name. */
import type { Engine } from "@pawl/core/engine/engine.js";
import { createTally, rates } from "@pawl/core/rollout/tally.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import type { PromptStyle } from "@pawl/core/text/prompt.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import type { OnActivity } from "@pawl/core/train/activity.js";
import { finite, learntMetrics } from "@pawl/core/train/metrics.js";
import type { RwmlConfig } from "./config.js";
import { heldOutSequences } from "./filter.js";
import { meanLoss, textSequences } from "./forgetting.js";
import { type PredictionSummary, predict, rewardPredictions } from "./prediction-groups.js";
import type { Question } from "./question.js";
import type { StateReward } from "./reward.js";
import type { Triplet } from "./triplet.js";
import type { FinishedRwmlUpdate } from "./updates.js";

/** What an update did, and timings. */
export function rwmlUpdateMetrics(done: FinishedRwmlUpdate): MetricsLine {
  const tally = createTally();
  for (const group of done.tasks) for (const episode of group.episodes) tally.add(episode);
  const seconds = Object.entries(done.seconds);
  return finite({
    update: done.index,
    ...summaryMetrics("rwml", done.summary),
    ...predictedShares(
      "rwml",
      done.predictions.map((group) => group.episodes.map((episode) => episode.return)),
    ),
    "rwml.equalGroups": done.equalGroups,
    "rwml.skipped": done.learnt === undefined ? 1 : 0,
    "train.success": rates(tally.all).success,
    ...learntMetrics(done.learnt?.metrics),
    "train.tokens": done.learnt?.tokens ?? 0,
    ...Object.fromEntries(seconds.map(([phase, time]) => [`seconds.${phase}`, time])),
    "memory.mib": process.resourceUsage().maxRSS / 1024,
  });
}

function summaryMetrics(prefix: string, summary: PredictionSummary): MetricsLine {
  return {
    [`${prefix}.reward`]: summary.meanReward,
    [`${prefix}.exact`]: summary.exact,
    [`${prefix}.empty`]: summary.empty,
    [`${prefix}.unended`]: summary.unended,
    [`${prefix}.malformed`]: summary.malformed,
    [`${prefix}.unreadable`]: summary.unreadable,
  };
}

/**
 * Fractions of triplets that are predicted in no sample, in some, and in all: only `some` can be
 * learnt from. Graded rewards that are all equal count as none below one half.
 */
export function predictedShares(
  prefix: string,
  rewards: readonly (readonly number[])[],
): MetricsLine {
  const counts = { none: 0, some: 0, all: 0 };
  for (const group of rewards) {
    const equal = group.every((reward) => reward === group[0]);
    counts[equal ? (group[0]! < 0.5 ? "none" : "all") : "some"]++;
  }
  return Object.fromEntries(
    Object.entries(counts).map(([share, n]) => [
      `${prefix}.foreseen.${share}`,
      n / Math.max(rewards.length, 1),
    ]),
  );
}

/** What held-out measurements need. */
export interface HeldOutSetup {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  readonly style: PromptStyle;
  readonly question: Question;
  readonly reward: StateReward;
  readonly signal?: AbortSignal;
  readonly onActivity?: OnActivity | undefined;
}

/**
 * How well held-out states are predicted, by the most probable prediction and by samples as in
 * learning, and the loss per token on old actions, states and text now.
 */
export async function heldOutMetrics(
  { engine, tokenizer, style, question, reward, signal, onActivity }: HeldOutSetup,
  triplets: readonly Triplet[],
  config: Pick<RwmlConfig, "heldOut" | "predictionTokens" | "temperature" | "seed">,
): Promise<MetricsLine> {
  const some = triplets.slice(0, config.heldOut.triplets);
  const total = some.length * (1 + config.heldOut.samples);
  const evaluating = (done: number): void =>
    onActivity?.({ what: "evaluating", done, total, unit: "predictions" });
  evaluating(0);
  const predictHeldOut = async (count: number, temperature: number) => {
    const sampling = { count, maxTokens: config.predictionTokens, temperature, seed: config.seed };
    const predicted = await predict(engine, question, some, sampling);
    return rewardPredictions(some, predicted, reward, signal);
  };
  const { summary } = await predictHeldOut(1, 0);
  evaluating(some.length);
  const sampled = await predictHeldOut(config.heldOut.samples, config.temperature);
  evaluating(total);
  const { actions, states } = heldOutSequences(some, question, tokenizer, style);
  const { text } = config.heldOut;
  return finite({
    ...summaryMetrics("heldOut", summary),
    "heldOut.sampled.reward": sampled.summary.meanReward,
    "heldOut.sampled.exact": sampled.summary.exact,
    ...predictedShares("heldOut", sampled.rewards),
    "heldOut.loss.actions": await meanLoss(engine, actions),
    "heldOut.loss.states": await meanLoss(engine, states),
    ...(text !== undefined && {
      "heldOut.loss.text": await meanLoss(
        engine,
        textSequences(text, tokenizer, engine.capabilities.maxContext),
      ),
    }),
  });
}
