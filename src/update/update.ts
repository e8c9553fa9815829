/**
 * PaW: one update's episodes as sequences that teach policy and world model in one pass (PaW eq. 11).
 *
 *   L(θ) = mean over groups g of [ L_RL(θ; g) + λ_g · L_WM(θ; S_g) ]
 *
 * Each step is a sequence h_t ⊕ a_t, with o_{t+1} appended where the step is selected (PaW eq. 4) and its group
 * still has something to learn (λ_g > 0); elsewhere the observation is cut off and costs nothing. Tokens
 * of actions and of appended observations are targets, and per-token inputs say what each counts.
 */
import type { Advantages } from "../advantages/advantages.js";
import { mean } from "../advantages/statistics.js";
import type { PawOptions } from "../objectives/paw-options.js";
import type { Group } from "../rollout/episode.js";
import { balance } from "./balance.js";
import { firstOfKind } from "./dedupe.js";
import { type MergedSequence, mergeContinuations } from "./merge.js";
import { type TargetedTokens, withObservations } from "./multistep.js";
import { fullEntropy, sampledEntropy, selectTop } from "./selection.js";
import { skippedGroups } from "./signal.js";
import { type ActionResults, actionInputs, stepSequence } from "./step-sequence.js";
import { type Transition, transitionsOf } from "./transitions.js";
import { type Normaliser, policyWeights, worldWeights } from "./weights.js";

/** What preparing an update depends on. */
export interface UpdateOptions {
  readonly paw: PawOptions;
  /** What the mean of the policy's losses runs over. */
  readonly normaliser: Normaliser;
  /** R_max: the largest return an episode can have. */
  readonly maxReturn: number;
  /** Whether each episode is a group of its own, as PPO has it. */
  readonly ownGroups?: boolean;
  /** Longest sequence the engine takes; observations are cut off there. */
  readonly maxTokens?: number;
  readonly results?: ActionResults;
}

/** An update, ready to be cut into mini-batches. */
export interface Update {
  readonly transitions: readonly Transition[];
  /** One sequence per transition, in the same order, but for those that continue one another: they are one. */
  readonly sequences: readonly MergedSequence[];
  /** Action entropy of each transition. */
  readonly entropies: readonly number[];
  /** Whether each transition was selected for the world model. */
  readonly selected: readonly boolean[];
  /** λ of each group; empty where PaW is off. */
  readonly lambdas: readonly number[];
  readonly summary: UpdateSummary;
}

/** Numbers of an update, for its metrics. */
export interface UpdateSummary {
  readonly groups: number;
  readonly episodes: number;
  readonly brokenEpisodes: number;
  readonly actionTokens: number;
  /** Observation tokens that are targets. */
  readonly observationTokens: number;
  /** Transitions that selection drew from: with an observation, and first of their kind. */
  readonly pool: number;
  /** Share of the pool that was selected. */
  readonly selectedShare: number;
  readonly meanActionEntropy: number;
  /** The adaptive coefficient, mean over groups. */
  readonly meanLambda: number;
  /** Sequences whose observations did not fit and were cut off. */
  readonly cut: number;
}

/** Turns groups of episodes and their advantages into sequences to train on. */
export function prepareUpdate(
  groups: readonly Group[],
  advantages: Advantages,
  options: UpdateOptions,
): Update {
  const skipped = skippedGroups(groups, options.paw.skipWithoutSignal, options.ownGroups === true);
  if (options.ownGroups !== true) return prepareGroups(groups, advantages, skipped, options);
  const own = groups.flatMap((group, g) => group.episodes.map(() => skipped[g]!));
  return prepareGroups(...ungroup(groups, advantages), own, options);
}

function prepareGroups(
  groups: readonly Group[],
  advantages: Advantages,
  skipped: readonly boolean[],
  options: UpdateOptions,
): Update {
  const { results = {} } = options;
  const transitions = transitionsOf(groups);
  for (const [name, tokens] of Object.entries(results))
    if (tokens.length !== transitions.length)
      throw new Error(
        `${name} are for ${tokens.length} sequences; expected one for each of ${transitions.length} transitions, as actionSequences lists them`,
      );
  const world = worldTargets(groups, transitions, skipped, options);
  const countable = transitions.map((transition, i) => ({
    actionTokens: transition.actionEnd - transition.actionStart,
    observations: world.tokens[i]!.observations,
    ...transition,
  }));
  const policyWeight = policyWeights(countable, options.normaliser);
  const worldWeight = worldWeights(countable, world.lambdas, options.paw.normaliser);
  // An observation that weighs nothing is cut off, so that it costs nothing.
  const tokens = transitions.map((transition, i) =>
    worldWeight[i]!.some((weight) => weight > 0) ? world.tokens[i]! : actionOnly(transition),
  );
  const steps = transitions.map((transition, i) => {
    const action = actionInputs(transition, i, advantages, policyWeight[i]!, results);
    const weights = options.paw.loss === "off" ? undefined : worldWeight[i]!;
    return stepSequence(transition, tokens[i]!, action, weights);
  });
  const { entropies, selected, lambdas } = world;
  const sequences = mergeContinuations(steps);
  const summary = summarise(groups, transitions, tokens, world);
  return { transitions, sequences, entropies, selected, lambdas, summary };
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

/** What the world model is to learn: which transitions, with which observations, by which λ. */
interface WorldTargets {
  readonly entropies: readonly number[];
  readonly pool: readonly number[];
  readonly selected: readonly boolean[];
  readonly lambdas: readonly number[];
  readonly tokens: readonly TargetedTokens[];
}

function worldTargets(
  groups: readonly Group[],
  transitions: readonly Transition[],
  skipped: readonly boolean[],
  { paw, maxReturn, maxTokens = Number.POSITIVE_INFINITY, results = {} }: UpdateOptions,
): WorldTargets {
  const isOn = paw.loss !== "off";
  const kind = isOn ? paw.entropy : "sampled";
  const entropies = transitions.map((transition, i) => actionEntropy(transition, i, results, kind));
  const pool = isOn ? poolOf(transitions, paw) : [];
  const selected = selectFrom(pool, entropies, paw.alpha);
  const lambdas = isOn ? balance(wholeReturns(groups), paw.balance, maxReturn) : [];
  return {
    entropies,
    pool,
    selected,
    lambdas: lambdas.map((lambda, g) => (skipped[g] ? 0 : lambda)),
    tokens: transitions.map((transition, i) =>
      selected[i] ? withObservations(transitions, i, paw, maxTokens) : actionOnly(transition),
    ),
  };
}

function summarise(
  groups: readonly Group[],
  transitions: readonly Transition[],
  tokens: readonly TargetedTokens[],
  { pool, selected, entropies, lambdas }: WorldTargets,
): UpdateSummary {
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const taught = new Set(transitions.map((transition) => transition.group));
  const episodes = groups.flatMap((group) => group.episodes);
  const brokenEpisodes = episodes.filter((episode) => episode.stop === "broken").length;
  const observations = tokens.flatMap((sequence) => sequence.observations);
  return {
    groups: taught.size,
    episodes: episodes.length - brokenEpisodes,
    brokenEpisodes,
    actionTokens: sum(transitions.map(({ actionStart, actionEnd }) => actionEnd - actionStart)),
    observationTokens: sum(observations.map(({ start, end }) => end - start)),
    pool: pool.length,
    selectedShare: selected.filter(Boolean).length / Math.max(pool.length, 1),
    meanActionEntropy: mean(entropies),
    meanLambda: mean(lambdas.filter((_, g) => taught.has(g))),
    cut: tokens.filter(({ cut }) => cut).length,
  };
}

/** Each episode as a group of its own. */
function ungroup(groups: readonly Group[], { advantages, returns }: Advantages) {
  const split = <T>(table: readonly (readonly T[])[]) =>
    table.flatMap((episodes) => episodes.map((episode) => [episode]));
  return [
    groups.flatMap((group) => group.episodes.map((episode) => ({ ...group, episodes: [episode] }))),
    { advantages: split(advantages), ...(returns !== undefined && { returns: split(returns) }) },
  ] as const;
}

function actionEntropy(
  { logprobs, actionStart, actionEnd }: Transition,
  i: number,
  results: ActionResults,
  kind: PawOptions["entropy"],
): number {
  if (kind === "full") {
    if (results.entropies === undefined)
      throw new Error(
        "selection by full entropy needs the entropies of the action tokens; ask the engine for them, or select by sampled entropy",
      );
    return fullEntropy(Array.from(results.entropies[i]!).slice(actionStart, actionEnd));
  }
  return sampledEntropy(
    logprobs ?? Array.from(results.oldLogprobs?.[i] ?? []).slice(actionStart, actionEnd),
  );
}

/** The places of the transitions that selection draws from. */
function poolOf(transitions: readonly Transition[], paw: PawOptions): readonly number[] {
  const isFirst = paw.dedupe ? firstOfKind(transitions) : undefined;
  const places = transitions.map((_, i) => i);
  const observed = places.filter((i) => {
    const { sequence, actionEnd } = transitions[i]!;
    return sequence.ids.length > actionEnd;
  });
  if (observed.length === 0 && places.length > 0)
    throw new Error(
      "world modelling is on, but no step has observation tokens; record them in the rollout, or set paw.loss to off",
    );
  return observed.filter((i) => isFirst?.[i] ?? true);
}

function selectFrom(
  pool: readonly number[],
  entropies: readonly number[],
  alpha: number,
): readonly boolean[] {
  const selected = new Array<boolean>(entropies.length).fill(false);
  const isTop = selectTop(
    pool.map((i) => entropies[i]!),
    alpha,
  );
  pool.forEach((i, place) => {
    selected[i] = isTop[place]!;
  });
  return selected;
}

function wholeReturns(groups: readonly Group[]): readonly (readonly number[])[] {
  return groups.map((group) =>
    group.episodes.filter((episode) => episode.stop !== "broken").map((episode) => episode.return),
  );
}

function actionOnly({ sequence, actionEnd }: Transition): TargetedTokens {
  return { ids: sequence.ids.slice(0, actionEnd), observations: [], cut: false };
}
