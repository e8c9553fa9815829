/**
 * Multi-step targets, beyond the paper (PaW §7) and off by default: after h_t ⊕ a_t ⊕ o_{t+1} come
 * the recorded a_{t+1} ⊕ o_{t+2} ⊕ … up to o_{t+k}. The later actions are given, not learned; the
 * observation o_{t+j} is weighted δ^(j−1) relative to o_{t+1}.
 */
import type { Transition } from "./transitions.js";

/** How far ahead a world model predicts. */
export interface HorizonOptions {
  /** k: how many observations to predict. */
  readonly horizon: number;
  /** δ: the weight of each observation relative to the previous one. */
  readonly horizonDiscount: number;
}

/** The tokens `[start, end)` of one observation to predict, and its factor. */
export interface ObservationTarget {
  readonly start: number;
  readonly end: number;
  readonly factor: number;
}

/** A transition's tokens with everything to predict. */
export interface TargetedTokens {
  readonly ids: readonly number[];
  readonly observations: readonly ObservationTarget[];
  /** Whether the sequence was truncated because it would have been too long. */
  readonly cut: boolean;
}

/** The tokens of transition `index` with up to k observations, truncated at `maxTokens`. */
export function withObservations(
  transitions: readonly Transition[],
  index: number,
  { horizon, horizonDiscount }: HorizonOptions,
  maxTokens: number,
): TargetedTokens {
  const first = transitions[index]!;
  const ids = first.sequence.ids.slice(0, first.actionEnd);
  const observations: ObservationTarget[] = [];
  let cut = false;
  for (let j = 0; j < horizon; j++) {
    const later = transitions[index + j];
    if (later?.source !== first.source) break;
    const { sequence, actionStart, actionEnd, observationStart, observationEnd } = later;
    const between = j === 0 ? [] : betweenSteps(transitions[index + j - 1]!, later);
    if (between === undefined) break;
    // What is read before the observation: the action, and what a chat template writes around it.
    const before = [
      ...between,
      ...sequence.ids.slice(j === 0 ? actionEnd : actionStart, observationStart),
    ];
    const room = maxTokens - ids.length - before.length;
    const observation = sequence.ids
      .slice(observationStart, observationEnd)
      .slice(0, Math.max(room, 0));
    cut ||= observationStart + observation.length < observationEnd;
    if (observation.length === 0) break;
    ids.push(...before);
    const start = ids.length;
    ids.push(...observation);
    observations.push({ start, end: ids.length, factor: horizonDiscount ** j });
  }
  return { ids, observations, cut };
}

/**
 * What is read between an observation and the next action: in a conversation, what the chat
 * template writes there; elsewhere the end of the observation, if it is not learnt. Undefined if the
 * next step starts a sequence of its own.
 */
function betweenSteps(before: Transition, next: Transition): readonly number[] | undefined {
  const { ids } = before.sequence;
  if (before.observationStart === before.actionEnd) return ids.slice(before.observationEnd);
  const continues = ids.every((id, i) => id === next.sequence.ids[i]);
  return continues ? next.sequence.ids.slice(before.observationEnd, next.actionStart) : undefined;
}
