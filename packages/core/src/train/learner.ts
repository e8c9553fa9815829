/**
 * The learner: turns groups of episodes into new weights. RL, RWML and replay all learn through it.
 *
 * The loops (`rl.ts`, `rwml.ts`) call its stages one after another and show the algorithm; here
 * each stage gets its settings:
 *
 *   score     what the engine, and a separate critic, compute for the actions
 *   prepare   selection, balance and weights: sequences to train on (PaW eq. 4, 10, 11)
 *   measure   how both gradients relate
 *   correct   what a teacher would have done in failed episodes
 *   learn     mini-batches, one optimiser step each
 */
import { type Advantages, type TokenNumbers, usesCritic } from "../advantages/advantages.js";
import type { Engine, TargetSequence } from "../engine/engine.js";
import type { Environment } from "../envs/env.js";
import { updateObjective } from "../objectives/objective.js";
import type { Group } from "../rollout/episode.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import type { PromptStyle } from "../text/prompt.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { pawAt } from "../update/targets.js";
import {
  type ActionResults,
  actionSequences,
  actionTokens,
  transitionsOf,
} from "../update/transitions.js";
import { prepareUpdate, type Update } from "../update/update.js";
import { type Corrections, correct } from "./corrections.js";
import type { Critic } from "./critic.js";
import { type GradientRelation, measureGradients } from "./gradients.js";
import { type Learnt, learn } from "./learn.js";
import { mismatchLimit } from "./mismatch.js";
import type { ReferenceScores } from "./reference-scores.js";
import type { RlOptions } from "./rl-types.js";

/** What learning works with. */
export interface LearnerContext {
  readonly engine: Engine;
  /** A critic with its own weights; absent: a head on the policy, if values are needed at all. */
  readonly critic?: Critic | undefined;
  /** Scores the policy's tokens, if there is a teacher to learn from. */
  readonly teacher?: Pick<Engine, "forward"> | undefined;
  readonly environment: Environment;
  readonly tokenizer: Tokenizer;
  readonly style: PromptStyle;
  /** The reference, if it scores while the policy acts; absent: it scores afterwards, all at once. */
  readonly reference?: ReferenceScores | undefined;
  /** Whether another program sampled the actions; default: what the engine reports. */
  readonly sampler?: boolean;
  /** Whether weights of an earlier update may have sampled the actions. */
  readonly stale?: boolean;
}

/** How to learn. */
export type LearnerOptions = Pick<
  RlOptions,
  | "advantage"
  | "objective"
  | "distillation"
  | "paw"
  | "gradients"
  | "corrections"
  | "stepLimit"
  | "minibatch"
  | "optimizer"
  | "mismatchLimit"
>;

/** The position of an update in its run. */
interface UpdatePlace {
  readonly stepsBefore: number;
  readonly stepsInAll: number;
  readonly seed: number;
  readonly corrections?: Corrections | undefined;
  readonly onBatch?: (tokens: number, all: number) => void;
}

/** What policy and critic learnt. */
interface LearningResult {
  readonly learnt: Learnt;
  /** Metrics of a separate critic. */
  readonly critic: MetricsLine | undefined;
}

/** The stages of an update. */
export interface Learner {
  score(groups: readonly Group[]): Promise<ScoredActions>;
  /** The sequences of an update, by its number in the run. */
  prepare(
    groups: readonly Group[],
    advantages: Advantages,
    scored: ScoredActions,
    index: number,
  ): Update;
  /** How both gradients relate, if there are two and it is time to measure; changes no weights. */
  measure(update: Update, index: number): Promise<GradientRelation | undefined>;
  correct(groups: readonly Group[], seed: number): Promise<Corrections | undefined>;
  /** Undefined if there is nothing to learn from. */
  learn(update: Update, place: UpdatePlace): Promise<LearningResult | undefined>;
}

/** Gives every stage its settings. */
export function createLearner(context: LearnerContext, options: LearnerOptions): Learner {
  const { engine, critic, environment, tokenizer, style } = context;
  const { objective, paw, minibatch, optimizer } = options;
  const { aggregation } = objective;
  const values = usesCritic(options.advantage);
  const { sampler = engine.capabilities.otherSampler === true, stale = false } = context;
  // Either way the actions come from other probabilities than those that learn.
  const corrected = sampler || stale;
  const terms = { critic: values && critic === undefined, sampler: corrected };
  const loss = updateObjective(objective, paw, terms);
  const wanted = {
    old: corrected,
    reference: objective.kl > 0,
    entropies: paw.loss !== "off" && paw.entropy === "full",
    values,
  };
  return {
    score: (groups) => scoreActions(engine, groups, wanted, context),

    prepare: (groups, advantages, { results }, index) =>
      prepareUpdate(groups, advantages, {
        paw: pawAt(paw, index),
        tokenizer,
        aggregation,
        maxReturn: environment.maxReturn,
        ownGroups: values,
        maxTokens: engine.capabilities.maxContext,
        results,
        distillation: context.teacher && options.distillation,
      }),

    measure: (update, index) => measureGradients(engine, update, options, terms, index),

    correct: (groups, seed) =>
      correct(groups, options.corrections, {
        environment,
        style,
        tokenizer,
        stepLimit: options.stepLimit ?? environment.stepLimit,
        maxTokens: engine.capabilities.maxContext,
        seed,
      }),

    async learn(update, { corrections, ...place }) {
      if (update.sequences.length === 0) return undefined;
      const how = { aggregation, minibatch, ...place };
      const learnt = await learn(engine, update, {
        ...how,
        objective: loss,
        optimizer,
        ...(corrections !== undefined && { corrections }),
        stale,
        mismatchLimit: mismatchLimit(engine.capabilities, options.mismatchLimit),
      });
      return { learnt, critic: await critic?.learn(update, how) };
    },
  };
}

/** What is needed for the actions. */
interface Wanted {
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
interface ScoredActions {
  readonly results: ActionResults;
  readonly valueTable?: TokenNumbers;
  /** The share of the actions that the reference had scored before; undefined if it does so after acting. */
  readonly ahead?: number;
}

/** Asks the engine for what is needed only, and a separate critic for values. */
async function scoreActions(
  engine: Engine,
  groups: readonly Group[],
  wanted: Wanted,
  { critic, teacher, reference: scores }: Pick<LearnerContext, "critic" | "teacher" | "reference">,
): Promise<ScoredActions> {
  const { entropies, values } = wanted;
  // A separate critic computes values; otherwise the policy's own head does.
  const head = values && critic === undefined;
  const transitions = transitionsOf(groups);
  const untold = transitions.some(({ logprobs }) => logprobs === undefined);
  const old = wanted.old === true || untold;
  const anew = old || entropies || head;
  const isNeeded = wanted.reference || anew || values || teacher !== undefined;
  if (transitions.length === 0 || !isNeeded) return { results: {} };
  const sequences = actionSequences(transitions);
  const policy = anew ? await engine.forward(sequences, { entropies, values: head }) : [];
  const reference = wanted.reference
    ? await (scores?.of(groups, transitions) ?? allAtOnce(engine, sequences))
    : undefined;
  const taught = await teacher?.forward(sequences);
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
      ...(taught && { teacherLogprobs: taught.map((result) => result.logprobs) }),
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
