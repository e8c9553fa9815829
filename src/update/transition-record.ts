/** The record of a transition: what each pass of `update.ts` adds to it. */
import type { Transition } from "./transitions.js";

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
