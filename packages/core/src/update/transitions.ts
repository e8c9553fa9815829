/**
 * Transitions: the steps of an update as training samples (h_t, a_t, o_{t+1}), in the order of
 * groups, episodes and steps. Broken episodes have none; steps that a branch shares with another
 * episode are that one's.
 */
import type { TokenNumbers } from "../advantages/advantages.js";
import type { TargetSequence } from "../engine/engine.js";
import { type Episode, type Group, ownFrom, ownSteps } from "../rollout/episode.js";
import { drawnLogprobs, type Sequence, type SpanKind } from "../text/sequence.js";

/** One step of an episode with the positions of its tokens. */
export interface Transition {
  /** Indices into the tables of advantages: groups × episodes × steps. */
  readonly group: number;
  readonly episode: number;
  readonly step: number;
  readonly source: Episode;
  readonly sequence: Sequence;
  /** Prompt: `[0, actionStart)`, action: `[actionStart, actionEnd)`. */
  readonly actionStart: number;
  readonly actionEnd: number;
  /** The observation; a chat template may write something before and after it. */
  readonly observationStart: number;
  readonly observationEnd: number;
  /** The temperature the action was sampled at, which it is learnt at too. */
  readonly temperature: number;
  /** Log-probabilities of the action's tokens at that temperature; undefined if not recorded. */
  readonly logprobs: readonly number[] | undefined;
}

/** All steps of all unbroken episodes, in order, each once. */
export function transitionsOf(groups: readonly Group[]): readonly Transition[] {
  return groups.flatMap((group, g) =>
    group.episodes.flatMap((source, e) =>
      source.stop === "broken"
        ? []
        : ownSteps(source).map((_, own) => {
            const step = own + ownFrom(source);
            return { group: g, episode: e, step, source, ...tokensOf(source, step) };
          }),
    ),
  );
}

const ORDER: readonly SpanKind[] = ["prompt", "action", "observation"];
/** What a chat template writes around an observation comes after the action too. */
const rankOf = (kind: SpanKind): number =>
  kind === "template" ? ORDER.length - 1 : ORDER.indexOf(kind);

function tokensOf(episode: Episode, step: number) {
  const where = () => `step ${step} of attempt ${episode.attempt} at task ${episode.task.id}`;
  const { sequence } = episode.steps[step]!;
  if (sequence === undefined)
    throw new Error(
      `${where()} has no tokens: policy ${episode.policy} is not a model that can be trained; use an engine's policy`,
    );
  return positionsOf(sequence, where);
}

/** Where the parts of a step's tokens are. */
export function positionsOf(sequence: Sequence, where: () => string = () => "a step") {
  const { spans, ids, temperature = 1 } = sequence;
  const logprobs = drawnLogprobs(sequence);
  let rank = 0;
  let actionStart = 0;
  let actionEnd = 0;
  let observationStart = 0;
  let observationEnd = 0;
  // A prompt with the whole history has about a hundred spans, and every step has a prompt: one
  // pass only.
  for (const { kind, start, end } of spans) {
    const next = rankOf(kind);
    if (next < rank)
      throw new Error(
        `${where()}: expected spans in the order ${ORDER.join(", ")}, found ${spans.map((span) => span.kind).join(", ")}`,
      );
    rank = next;
    if (kind === "observation") {
      if (observationEnd === 0) observationStart = start;
      observationEnd = end;
    }
    if (kind !== "action") continue;
    if (actionEnd === 0) actionStart = start;
    actionEnd = end;
  }
  if (actionStart < 1 || actionEnd <= actionStart || actionEnd > ids.length)
    throw new Error(
      `${where()}: expected a prompt and an action of one token or more each, found an action [${actionStart}, ${actionEnd}) of ${ids.length} tokens`,
    );
  if (logprobs !== undefined && logprobs.length !== actionEnd - actionStart)
    throw new Error(
      `${where()}: the action has ${actionEnd - actionStart} tokens, but ${logprobs.length} log-probabilities`,
    );
  if (observationEnd === 0) [observationStart, observationEnd] = [actionEnd, actionEnd];
  const action = { actionStart, actionEnd, observationStart, observationEnd };
  return { sequence, ...action, temperature, logprobs };
}

/**
 * Prompts and actions with the action as target, at its sampling temperature: what to ask an engine
 * for before an update is prepared.
 */
export function actionSequences(transitions: readonly Transition[]): readonly TargetSequence[] {
  return transitions.map(actionSequence);
}

/** The same of one step. */
export function actionSequence({
  sequence,
  actionStart,
  actionEnd,
  temperature,
}: ReturnType<typeof positionsOf>): TargetSequence {
  const temperatures = actionTemperatures(temperature, actionEnd, actionStart, actionEnd);
  const { constraint } = sequence;
  return {
    ...(constraint && { constraints: [{ start: actionStart, end: actionEnd, constraint }] }),
    ids: sequence.ids.slice(0, actionEnd),
    targets: new Uint8Array(actionEnd).fill(1, actionStart),
    ...(temperatures && { temperatures }),
  };
}

/**
 * Temperatures of this many tokens, where `[start, end)` is an action; undefined if all are 1.
 * Observations stay at 1: the world model's predictions are not sampled.
 */
export function actionTemperatures(
  temperature: number,
  length: number,
  start: number,
  end: number,
): Float32Array | undefined {
  if (temperature === 1) return undefined;
  return new Float32Array(length).fill(1).fill(temperature, start, end);
}

/**
 * Per-token results of `actionSequences`, action tokens only: groups × episodes × steps × tokens.
 */
export function actionTokens(
  groups: readonly Group[],
  transitions: readonly Transition[],
  results: readonly ArrayLike<number>[],
): TokenNumbers {
  const table: number[][][][] = groups.map((group) => group.episodes.map(() => []));
  transitions.forEach(({ group, episode, actionStart, actionEnd }, i) => {
    table[group]![episode]!.push(Array.from(results[i]!).slice(actionStart, actionEnd));
  });
  return table;
}

/** An engine's results for `actionSequences`: for each transition, one number per token. */
export interface ActionResults {
  /**
   * Log-probabilities under the policy that acted, recomputed because a separate sampler recorded
   * its own, or because those at the temperature were not recorded; absent: the recorded ones are
   * the policy's.
   */
  readonly oldLogprobs?: readonly ArrayLike<number>[];
  /** For the KL penalty. */
  readonly referenceLogprobs?: readonly ArrayLike<number>[];
  /** For distillation. */
  readonly teacherLogprobs?: readonly ArrayLike<number>[];
  /** For selection by `full` entropy. */
  readonly entropies?: readonly ArrayLike<number>[];
  /** For PPO. */
  readonly values?: readonly ArrayLike<number>[];
}

/** A transition with an engine's results for its tokens, and its advantage. */
export interface CreditedTransition extends Transition {
  /** As in `ActionResults`: one number per token. */
  readonly oldLogprobs: ArrayLike<number> | undefined;
  readonly referenceLogprobs: ArrayLike<number> | undefined;
  readonly teacherLogprobs: ArrayLike<number> | undefined;
  readonly entropies: ArrayLike<number> | undefined;
  readonly values: ArrayLike<number> | undefined;
  /** One number for all tokens of the action, or one for each. */
  readonly advantage: number | readonly number[];
  /** The critic's target for each token of the action. */
  readonly targetReturns: readonly number[] | undefined;
}

/** A transition whose action entropy is known. */
export interface MeasuredTransition extends CreditedTransition {
  readonly entropy: number;
}

/** A transition after selection. */
export interface SelectedTransition extends MeasuredTransition {
  /** Whether it is in the pool of selection: it has an observation. */
  readonly inPool: boolean;
  /** Whether it teaches the world model. */
  readonly selected: boolean;
}

/** A transition's tokens with what to predict. */
export interface TargetedTokens {
  readonly ids: readonly number[];
  /** The tokens `[start, end)` of the observation; absent if it is not learnt. */
  readonly observation?: { readonly start: number; readonly end: number };
  /** Whether the sequence was truncated because it would have been too long. */
  readonly cut: boolean;
}

/** A transition with the tokens to learn. */
export interface TargetedTransition extends SelectedTransition {
  readonly tokens: TargetedTokens;
}

/** A transition that can be learnt. */
export interface WeighedTransition extends TargetedTransition {
  /** The weight of each token of the action. */
  readonly policyWeight: number;
  /** The weight of each token of the observation; undefined if PaW is off. */
  readonly worldWeight: number | undefined;
}
