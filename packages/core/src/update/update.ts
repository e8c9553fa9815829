/**
 * PaW: turns one update's episodes into sequences that teach policy and world model in one pass
 * (PaW eq. 11).
 *
 *   L(θ) = mean over groups g of [ L_RL(θ; g) + λ_g · L_WM(θ; S_g) ]
 *
 * Every transition (h_t, a_t, o_{t+1}) is one record, and each pass below adds to it:
 *
 *   credit    the engine's results for its action tokens, and its advantage
 *   measure   its action entropy
 *   select    whether it teaches the world model (PaW eq. 4)
 *   target    its tokens h_t ⊕ a_t, with o_{t+1} appended if it is selected
 *   weigh     the weights of its tokens (PaW eq. 1, 9, 11), by the λ of its group (PaW eq. 10)
 *   trim      observations of weight 0 (λ_g = 0) are dropped, so that they cost nothing
 *
 * Tokens of actions and of appended observations are targets, with per-token inputs and weights.
 */
import type { Advantages } from "../advantages/advantages.js";
import { type PawOptions, type PawSettings, pawOptions } from "../objectives/paw-options.js";
import type { Group } from "../rollout/episode.js";
import { type Distillation, distilledAdvantage, teacherDistance } from "./distillation.js";
import { type MergedSequence, mergeContinuations, type StepSequence } from "./merge.js";
import { balance, fullEntropy, sampledEntropy, selectTop } from "./paw.js";
import { retarget, type TargetTokenizer } from "./targets.js";
import {
  type ActionResults,
  actionTemperatures,
  type CreditedTransition,
  type MeasuredTransition,
  type SelectedTransition,
  type TargetedTokens,
  type TargetedTransition,
  type Transition,
  transitionsOf,
  type WeighedTransition,
} from "./transitions.js";
import { summarise, type UpdateSummary } from "./update-summary.js";
import { type PolicyAggregation, policyWeights, worldWeights } from "./weights.js";

/** What preparing an update depends on. */
export interface UpdateOptions {
  readonly paw: PawSettings;
  /** What the mean of the policy's losses is taken over (default: all action tokens). */
  readonly aggregation?: PolicyAggregation;
  /** R_max of episodes that do not have their own. */
  readonly maxReturn: number;
  /** Whether each episode is its own group, as in PPO. */
  readonly ownGroups?: boolean;
  /** Longest sequence the engine takes; observations are truncated there. */
  readonly maxTokens?: number;
  readonly results?: ActionResults;
  /** Needs the teacher's log-probabilities. */
  readonly distillation?: Distillation | undefined;
  /** For `paw.until`, `paw.skip`, and texts as `paw.targets`. */
  readonly tokenizer?: TargetTokenizer;
}

/** The same with defaults filled in. */
interface FullOptions extends UpdateOptions {
  readonly paw: PawOptions;
  readonly aggregation: PolicyAggregation;
}

/** An update, ready to be split into mini-batches. */
export interface Update {
  /** The steps of all unbroken episodes, in order, with the results of selection. */
  readonly transitions: readonly SelectedTransition[];
  /**
   * One sequence per transition, in the same order, except that those that continue one another are
   * merged.
   */
  readonly sequences: readonly MergedSequence[];
  /** λ of each group; empty if PaW is off. */
  readonly lambdas: readonly number[];
  readonly summary: UpdateSummary;
}

/** Turns groups of episodes and their advantages into sequences to train on. */
export function prepareUpdate(
  groups: readonly Group[],
  advantages: Advantages,
  given: UpdateOptions,
): Update {
  const paw = pawOptions().parse(given.paw);
  const options = { ...given, paw, aggregation: given.aggregation ?? "token-mean" };
  if (options.ownGroups !== true) return prepareGroups(groups, advantages, options);
  return prepareGroups(...ungroup(groups, advantages), options);
}

function prepareGroups(
  groups: readonly Group[],
  advantages: Advantages,
  options: FullOptions,
): Update {
  const { paw } = options;
  const credited = credit(transitionsOf(groups), advantages, options);
  const measured = measure(credited, paw);
  const selected = select(measured, paw);
  const lambdas = lambdasOf(groups, options);
  const targeted = target(retarget(selected, paw, options.tokenizer), options);
  const weighed = weigh(targeted, lambdas, options);
  const learnt = trim(weighed);
  const sequences = mergeContinuations(learnt.map(stepSequence));
  const summary = summarise(groups, learnt, lambdas);
  return { transitions: selected, sequences, lambdas, summary };
}

/**
 * The steps of an update with whether each teaches the world model, as far as the record says: by the
 * log-probabilities that its actions were sampled with.
 */
export function selectedSteps(
  groups: readonly Group[],
  paw: PawOptions,
): readonly SelectedTransition[] {
  const none = groups.map(({ episodes }) => episodes.map(({ steps }) => steps.map(() => 0)));
  const credited = credit(transitionsOf(groups), { advantages: none }, {});
  return select(measure(credited, paw), paw);
}

/** Each transition with the engine's results and its advantage. */
function credit(
  transitions: readonly Transition[],
  { advantages, returns }: Advantages,
  { results = {}, distillation }: Pick<UpdateOptions, "results" | "distillation">,
): readonly CreditedTransition[] {
  for (const [name, tokens] of Object.entries(results))
    if (tokens.length !== transitions.length)
      throw new Error(
        `${name} are for ${tokens.length} sequences; expected one for each of ${transitions.length} transitions, as actionSequences lists them`,
      );
  const scored = transitions.map((transition, i) => ({
    ...transition,
    oldLogprobs: results.oldLogprobs?.[i],
    teacherLogprobs: results.teacherLogprobs?.[i],
  }));
  const distance = teacherDistance(scored) ?? 0;
  return scored.map((transition, i) => {
    const { group, episode, step } = transition;
    const advantage = advantages[group]![episode]![step]!;
    return {
      ...transition,
      referenceLogprobs: results.referenceLogprobs?.[i],
      entropies: results.entropies?.[i],
      values: results.values?.[i],
      advantage: distillation
        ? distilledAdvantage(advantage, transition, distance, distillation)
        : advantage,
      targetReturns: returns?.[group]?.[episode]?.[step],
    };
  });
}

/**
 * Each transition with its action entropy. Without world modelling it is only a metric, and needs
 * no engine.
 */
function measure(
  transitions: readonly CreditedTransition[],
  { loss, entropy }: PawOptions,
): readonly MeasuredTransition[] {
  const kind = loss === "off" ? "sampled" : entropy;
  return transitions.map((transition) => ({
    ...transition,
    entropy: actionEntropy(transition, kind),
  }));
}

function actionEntropy(
  { logprobs, oldLogprobs, entropies, actionStart, actionEnd }: CreditedTransition,
  kind: PawOptions["entropy"],
): number {
  const ofAction = (tokens: ArrayLike<number>) => Array.from(tokens).slice(actionStart, actionEnd);
  if (kind === "sampled") return sampledEntropy(logprobs ?? ofAction(oldLogprobs ?? []));
  if (entropies === undefined)
    throw new Error(
      "selection by full entropy needs the entropies of the action tokens; ask the engine for them, or select by sampled entropy",
    );
  return fullEntropy(ofAction(entropies));
}

/**
 * Each transition with whether it teaches the world model: the most uncertain of the pool (PaW eq.
 * 4).
 */
function select(
  transitions: readonly MeasuredTransition[],
  { loss, alpha }: PawOptions,
): readonly SelectedTransition[] {
  if (loss === "off")
    return transitions.map((transition) => ({ ...transition, inPool: false, selected: false }));
  const isObserved = ({ observationStart, observationEnd }: Transition) =>
    observationEnd > observationStart;
  // An agent may answer without anything that answers it; a world always does.
  const isAnswered = ({ source, step }: Transition) => source.steps[step]!.observation !== "";
  if (transitions.some(isAnswered) && !transitions.some(isObserved))
    throw new Error(
      "world modelling is on, but no step has observation tokens; record them in the rollout, or set paw.loss to off",
    );
  const pool = transitions.filter(isObserved);
  const isTop = selectTop(
    pool.map(({ entropy }) => entropy),
    alpha,
  );
  const drawn = new Map(pool.map((transition, place) => [transition, isTop[place]!]));
  return transitions.map((transition) => ({
    ...transition,
    inPool: drawn.has(transition),
    selected: drawn.get(transition) ?? false,
  }));
}

/** λ of each group (PaW eq. 10); none if PaW is off. */
function lambdasOf(groups: readonly Group[], { paw, maxReturn }: FullOptions): readonly number[] {
  if (paw.loss === "off") return [];
  const whole = groups.map(({ episodes }) => episodes.filter(({ stop }) => stop !== "broken"));
  return balance(
    whole.map((episodes) => episodes.map((episode) => episode.return)),
    paw.lambda,
    // All episodes of a group have the same task.
    whole.map(([episode]) => episode?.maxReturn ?? maxReturn),
  );
}

/** Each transition with its tokens to learn, including its observation if it is selected. */
function target(
  transitions: readonly SelectedTransition[],
  { maxTokens = Number.POSITIVE_INFINITY }: FullOptions,
): readonly TargetedTransition[] {
  return transitions.map((transition) => ({
    ...transition,
    tokens: transition.selected ? withObservation(transition, maxTokens) : actionOnly(transition),
  }));
}

/** The tokens up to the action's end. */
function actionOnly({ sequence, actionEnd }: Transition): TargetedTokens {
  return { ids: sequence.ids.slice(0, actionEnd), cut: false };
}

/** The tokens with the observation, truncated at `maxTokens`. */
export function withObservation(transition: Transition, maxTokens: number): TargetedTokens {
  const { sequence, observationStart: start, observationEnd } = transition;
  const end = Math.min(observationEnd, maxTokens);
  const cut = end < observationEnd;
  if (end <= start) return { ...actionOnly(transition), cut };
  return { ids: sequence.ids.slice(0, end), observation: { start, end }, cut };
}

/** Each transition with the weights of its tokens. */
function weigh(
  transitions: readonly TargetedTransition[],
  lambdas: readonly number[],
  { paw, aggregation }: FullOptions,
): readonly WeighedTransition[] {
  const countable = transitions.map(({ group, episode, actionStart, actionEnd, tokens }) => ({
    group,
    episode,
    actionTokens: actionEnd - actionStart,
    observationTokens: tokens.observation ? tokens.observation.end - tokens.observation.start : 0,
  }));
  const policy = policyWeights(countable, aggregation);
  const world = worldWeights(countable, lambdas, paw.aggregation);
  return transitions.map((transition, i) => ({
    ...transition,
    policyWeight: policy[i]!,
    worldWeight: paw.loss === "off" ? undefined : world[i]!,
  }));
}

/** Each transition without observations of weight 0. */
function trim(transitions: readonly WeighedTransition[]): readonly WeighedTransition[] {
  return transitions.map((transition) =>
    (transition.worldWeight ?? 0) > 0
      ? transition
      : { ...transition, tokens: actionOnly(transition) },
  );
}

/** Each episode as its own group. */
function ungroup(groups: readonly Group[], { advantages, returns }: Advantages) {
  const split = <T>(table: readonly (readonly T[])[]) =>
    table.flatMap((episodes) => episodes.map((episode) => [episode]));
  return [
    groups.flatMap((group) => group.episodes.map((episode) => ({ ...group, episodes: [episode] }))),
    { advantages: split(advantages), ...(returns !== undefined && { returns: split(returns) }) },
  ] as const;
}

/** The update with every λ, and so the world model's whole term, multiplied by a factor. */
export function scaleWorld(update: Update, factor: number): Update {
  const { sequences, lambdas, summary } = update;
  return {
    ...update,
    sequences: sequences.map((sequence) => {
      const { worldWeight } = sequence.inputs;
      if (worldWeight === undefined) return sequence;
      const scaled = Float32Array.from(worldWeight, (weight) => weight * factor);
      return { ...sequence, inputs: { ...sequence.inputs, worldWeight: scaled } };
    }),
    lambdas: lambdas.map((lambda) => factor * lambda),
    summary: { ...summary, meanLambda: factor * summary.meanLambda },
  };
}

/** The value of an input at the n-th action token, which is token `at` of the sequence. */
type InputAt = (at: number, n: number) => number;

/** The inputs of a transition's action tokens. */
function actionInputs(transition: WeighedTransition): Readonly<Record<string, InputAt>> {
  const { policyWeight, advantage, oldLogprobs, logprobs: recorded } = transition;
  const { referenceLogprobs, values, targetReturns } = transition;
  if (oldLogprobs === undefined && recorded === undefined)
    throw new Error(
      "the episodes have no log-probabilities of their actions; record them, or pass the engine's results for actionSequences as oldLogprobs",
    );
  return {
    policyWeight: () => policyWeight,
    advantage: (_, n) => (typeof advantage === "number" ? advantage : advantage[n]!),
    oldLogprob: (at, n) => (oldLogprobs === undefined ? recorded![n]! : oldLogprobs[at]!),
    ...(oldLogprobs && recorded && { samplerLogprob: (_: number, n: number) => recorded[n]! }),
    ...(referenceLogprobs && { referenceLogprob: (at: number) => referenceLogprobs[at]! }),
    ...(values && { oldValue: (at: number) => values[at]! }),
    ...(targetReturns && { targetReturn: (_: number, n: number) => targetReturns[n]! }),
  };
}

/** A transition to train on, from its action on. */
function stepSequence(transition: WeighedTransition): StepSequence {
  const { actionStart: start, actionEnd, temperature, worldWeight } = transition;
  const { ids, observation } = transition.tokens;
  const length = ids.length - start;
  const targets = new Uint8Array(length).fill(1, 0, actionEnd - start);
  const inputs: Record<string, Float32Array> = {};
  for (const [name, valueAt] of Object.entries(actionInputs(transition))) {
    const values = new Float32Array(length);
    for (let at = start; at < actionEnd; at++) values[at - start] = valueAt(at, at - start);
    inputs[name] = values;
  }
  if (worldWeight !== undefined) {
    const weights = new Float32Array(length);
    if (observation !== undefined) {
      const [from, to] = [observation.start - start, observation.end - start];
      targets.fill(1, from, to);
      weights.fill(worldWeight, from, to);
    }
    inputs.worldWeight = weights;
  }
  const temperatures = actionTemperatures(temperature, length, 0, actionEnd - start);
  const { constraint } = transition.sequence;
  return {
    ...{ ids, start, targets, inputs },
    ...(temperatures && { temperatures }),
    ...(constraint && { constraints: [{ start, end: actionEnd, constraint }] }),
  };
}
