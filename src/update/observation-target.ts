/** A transition's tokens with the observation that they predict: h_t ⊕ a_t ⊕ o_{t+1}. */
import type { Transition } from "./transitions.js";

/** A transition's tokens with what to predict. */
export interface TargetedTokens {
  readonly ids: readonly number[];
  /** The tokens `[start, end)` of the observation; absent if it is not learnt. */
  readonly observation?: { readonly start: number; readonly end: number };
  /** Whether the sequence was truncated because it would have been too long. */
  readonly cut: boolean;
}

/** The tokens up to the action's end. */
export function actionOnly({ sequence, actionEnd }: Transition): TargetedTokens {
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
