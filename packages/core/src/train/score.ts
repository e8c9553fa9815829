/** What the engine computes for the actions that were taken, at their sampling temperatures. */
import type { TokenNumbers } from "../advantages/advantages.js";
import type { Engine, TargetSequence } from "../engine/engine.js";
import type { Group } from "../rollout/episode.js";
import type { ActionResults } from "../update/transition-record.js";
import { actionSequences, actionTokens, transitionsOf } from "../update/transitions.js";
import type { Critic } from "./critic.js";
import type { ReferenceScores } from "./reference-scores.js";

/** What is needed for the actions. */
export interface Wanted {
  /**
   * Log-probabilities under the policy itself, because a separate sampler acted for it. They are
   * also computed if those at the sampling temperature were not recorded.
   */
  readonly old?: boolean;
  /** Log-probabilities under the frozen reference, for the KL penalty. */
  readonly reference: boolean;
  /** Entropies of the full distributions, for selection. */
  readonly entropies: boolean;
  /** The critic's values, for PPO. */
  readonly values: boolean;
}

/** Results per token, and values also as a table over groups, episodes and steps. */
export interface ScoredActions {
  readonly results: ActionResults;
  readonly valueTable?: TokenNumbers;
  /** The share of the actions that the reference had scored before; undefined if it does so after acting. */
  readonly ahead?: number;
}

/** Asks the engine for what is needed only, and a separate critic for values. */
export async function scoreActions(
  engine: Engine,
  groups: readonly Group[],
  wanted: Wanted,
  critic?: Pick<Critic, "values">,
  scores?: ReferenceScores,
): Promise<ScoredActions> {
  const { entropies, values } = wanted;
  // A separate critic computes values; otherwise the policy's own head does.
  const head = values && critic === undefined;
  const transitions = transitionsOf(groups);
  const untold = transitions.some(({ logprobs }) => logprobs === undefined);
  const old = wanted.old === true || untold;
  const anew = old || entropies || head;
  if (transitions.length === 0 || (!wanted.reference && !anew && !values)) return { results: {} };
  const sequences = actionSequences(transitions);
  const policy = anew ? await engine.forward(sequences, { entropies, values: head }) : [];
  const reference = wanted.reference
    ? await (scores?.of(groups, transitions) ?? allAtOnce(engine, sequences))
    : undefined;
  const valuesOf =
    values && critic !== undefined
      ? await critic.values(
          sequences,
          transitions.map(({ source }) => source),
        )
      : policy.map((result) => result.values!);
  return {
    results: {
      ...(old && { oldLogprobs: policy.map((result) => result.logprobs) }),
      ...(reference && { referenceLogprobs: reference.logprobs }),
      ...(entropies && { entropies: policy.map((result) => result.entropies!) }),
      ...(values && { values: valuesOf }),
    },
    ...(values && { valueTable: actionTokens(groups, transitions, valuesOf) }),
    ...(reference?.ahead !== undefined && { ahead: reference.ahead }),
  };
}

/** The reference's log-probabilities in one request, after acting. */
async function allAtOnce(
  engine: Engine,
  sequences: readonly TargetSequence[],
): Promise<{ readonly logprobs: readonly Float32Array[]; readonly ahead?: number }> {
  const results = await engine.forward(sequences, { weights: "reference" });
  return { logprobs: results.map(({ logprobs }) => logprobs) };
}
