/** The record of a transition: what each pass of `update.ts` adds to it. */
import type { TargetedTokens } from "./multistep.js";
import type { Transition } from "./transitions.js";

/** What an engine said of `actionSequences`: for each transition, one number per token. */
export interface ActionResults {
  /**
   * Log-probabilities under the policy that acted, computed again, because another sampler recorded those of its
   * own, or those at the temperature were not told; absent: those recorded are the policy's.
   */
  readonly oldLogprobs?: readonly ArrayLike<number>[];
  /** For the KL penalty. */
  readonly referenceLogprobs?: readonly ArrayLike<number>[];
  /** For selection by `full` entropy. */
  readonly entropies?: readonly ArrayLike<number>[];
  /** For PPO. */
  readonly values?: readonly ArrayLike<number>[];
}

/** A transition with what an engine said of its tokens, and what its action was worth. */
export interface CreditedTransition extends Transition {
  /** As in `ActionResults`: one number per token. */
  readonly oldLogprobs: ArrayLike<number> | undefined;
  readonly referenceLogprobs: ArrayLike<number> | undefined;
  readonly entropies: ArrayLike<number> | undefined;
  readonly values: ArrayLike<number> | undefined;
  /** One number for all tokens of the action, or one for each. */
  readonly advantage: number | readonly number[];
  /** What a critic should have said of each token of the action. */
  readonly targetReturns: readonly number[] | undefined;
}

/** A transition whose action entropy is known. */
export interface MeasuredTransition extends CreditedTransition {
  readonly entropy: number;
}

/** A transition after selection. */
export interface SelectedTransition extends MeasuredTransition {
  /** Whether selection could draw it: it has an observation, and is the first of its kind. */
  readonly inPool: boolean;
  /** Whether it teaches the world model. */
  readonly selected: boolean;
}

/** A transition with the tokens to learn. */
export interface TargetedTransition extends SelectedTransition {
  readonly tokens: TargetedTokens;
}

/** A transition that can be learnt. */
export interface WeighedTransition extends TargetedTransition {
  /** What each token of the action counts. */
  readonly policyWeight: number;
  /** What each token of each appended observation counts; undefined where PaW is off. */
  readonly worldWeights: readonly number[] | undefined;
}
