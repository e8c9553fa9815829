/** The numbers of an RWML update and of its held-out measurements, by name. */
import type { Engine } from "../engine/engine.js";
import { createTally, rates } from "../rollout/tally.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import { meanLoss, textSequences } from "../rwml/forgetting.js";
import { heldOutSequences } from "../rwml/held-out.js";
import { predict } from "../rwml/predict.js";
import { type PredictionSummary, rewardPredictions } from "../rwml/prediction-groups.js";
import type { Question } from "../rwml/question.js";
import type { StateReward } from "../rwml/reward.js";
import type { Triplet } from "../rwml/triplet.js";
import type { PromptStyle } from "../text/prompt.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { finite } from "./metrics.js";
import type { FinishedRwmlUpdate } from "./rwml.js";
import type { RwmlConfig } from "./rwml-config.js";

/** What an update did, and where the time went. */
export function rwmlUpdateMetrics(done: FinishedRwmlUpdate): MetricsLine {
  const tally = createTally();
  for (const group of done.tasks) for (const episode of group.episodes) tally.add(episode);
  const seconds = Object.entries(done.seconds);
  return finite({
    update: done.index,
    ...summaryMetrics("rwml", done.summary),
    "rwml.equalGroups": done.equalGroups,
    "rwml.skipped": done.learnt === undefined ? 1 : 0,
    "train.success": rates(tally.all).success,
    ...done.learnt?.metrics,
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

/** What held-out measurements need. */
export interface HeldOutSetup {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  readonly style: PromptStyle;
  readonly question: Question;
  readonly reward: StateReward;
  readonly signal?: AbortSignal;
}

/** How well held-out states are foreseen, and what old actions, states and text cost now, per token. */
export async function heldOutMetrics(
  { engine, tokenizer, style, question, reward, signal }: HeldOutSetup,
  triplets: readonly Triplet[],
  config: Pick<RwmlConfig, "heldOut" | "predictionTokens">,
): Promise<MetricsLine> {
  const some = triplets.slice(0, config.heldOut.triplets);
  const predicted = await predict(engine, question, some, {
    count: 1,
    maxTokens: config.predictionTokens,
    temperature: 0,
    seed: 0,
  });
  const { summary } = await rewardPredictions(some, predicted, reward, signal);
  const { actions, states } = heldOutSequences(some, question, tokenizer, style);
  const { text } = config.heldOut;
  return finite({
    ...summaryMetrics("heldOut", summary),
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
