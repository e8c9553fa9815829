/**
 * Observation predictions: the probability that a run's model gives each token of the world's
 * response.
 *
 * The record holds no probabilities of observation tokens, so they are computed for the same
 * recorded steps with the weights before RL and with the latest ones. The mask is the run's own
 * (`packages/core/src/objectives/world-losses.ts`).
 */
import type { Engine } from "@pawl/core/engine/engine.js";
import { evaluateTokens } from "@pawl/core/objectives/expression-evaluate.js";
import type { PawOptions } from "@pawl/core/objectives/paw-options.js";
import { worldObjective } from "@pawl/core/objectives/world-losses.js";
import type { Step } from "@pawl/core/rollout/episode.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import type { SampledEpisode } from "./sampled-episodes.js";

/** One token of an observation. */
interface PredictedToken {
  readonly text: string;
  readonly p: number;
  /** Whether the mask keeps it for training; undefined if no world model is trained. */
  readonly kept?: boolean;
}

/** A step's observation under several weights. */
export interface PredictedStep {
  readonly goal: string;
  readonly action: string;
  readonly update: number;
  readonly rows: readonly {
    readonly weights: string;
    readonly tokens: readonly PredictedToken[];
  }[];
}

/** Weights by the name that the report shows. */
export interface NamedWeights {
  readonly name: string;
  readonly folder: string;
}

/** Steps shown per episode: the first ones with different observations. */
const STEPS = 3;

/**
 * Asks the engine for the probability of every observation token of some steps, under each of the
 * weights.
 */
export async function predictObservations(
  engine: Engine,
  tokenizer: Tokenizer,
  sampled: readonly SampledEpisode[],
  weights: readonly NamedWeights[],
  paw: PawOptions,
): Promise<readonly PredictedStep[]> {
  const seen = new Set<string>();
  const isNew = ({ observation }: Step): boolean =>
    !seen.has(observation) && seen.add(observation) !== undefined;
  const chosen = sampled.flatMap(({ update, episode }) =>
    episode.steps
      .filter((step) => hasObservation(step) && isNew(step))
      .slice(0, STEPS)
      .map((step) => ({ update, goal: episode.goal, step, ...targetsOf(step) })),
  );
  if (chosen.length === 0) return [];
  const rows: PredictedStep["rows"][number][][] = chosen.map(() => []);
  for (const { name, folder } of weights) {
    await engine.load(folder);
    const results = await engine.forward(chosen);
    results.forEach(({ logprobs }, i) => {
      const { ids, start } = chosen[i]!;
      const ends = Array.from(logprobs).slice(start);
      rows[i]!.push({
        weights: name,
        tokens: ends.map((logprob, n) => ({
          text: tokenizer.decode([ids[start + n]!]),
          p: Math.exp(logprob),
          ...maskOf(logprob, paw),
        })),
      });
    });
  }
  return chosen.map(({ goal, step, update }, i) => ({
    goal,
    action: step.action,
    update,
    rows: rows[i]!,
  }));
}

const hasObservation = ({ sequence }: Step): boolean =>
  sequence?.spans.some((span) => span.kind === "observation") === true;

function targetsOf({ sequence }: Step) {
  const { ids, spans } = sequence!;
  const { start } = spans.find((span) => span.kind === "observation")!;
  const { end } = spans.findLast((span) => span.kind === "observation")!;
  const shown = ids.slice(0, end);
  return { ids: shown, start, targets: Uint8Array.from(shown, (_, i) => (i >= start ? 1 : 0)) };
}

/** Whether the mask keeps a token of this log-probability; nothing if no world model is trained. */
export function maskOf(logprob: number, paw: PawOptions): { kept?: boolean } {
  const { loss } = paw;
  if (loss === "off") return {};
  const { metrics } = worldObjective({ ...paw, loss });
  const [clipped] = evaluateTokens([metrics["world.clipped"]!], {
    count: 1,
    quantities: { logprob: [logprob] },
    inputs: { worldWeight: [1] },
  });
  return { kept: clipped![0] === 0 };
}
