/**
 * A sequence: token ids with spans that say which part each token belongs to and where it came
 * from.
 *
 * Token ids are created once, when a step is sampled, and never re-tokenised between sampling and
 * training.
 */

import type { Constraint } from "./constraint.js";

/**
 * What a span of tokens is: what the policy read, what it wrote, the environment's answer, or what
 * a chat template writes around that answer, which nobody learns.
 */
export type SpanKind = "prompt" | "action" | "observation" | "template";

/** A run of tokens `[start, end)` of one kind, with its origin (`template`, `env`, `policy`, …). */
export interface Span {
  readonly kind: SpanKind;
  readonly start: number;
  readonly end: number;
  /** Who wrote the text behind these tokens. */
  readonly origin: string;
}

/** Token ids with their spans; spans are in order, do not overlap and cover every token. */
export interface Sequence {
  readonly ids: readonly number[];
  readonly spans: readonly Span[];
  /** Log-probability of each token of the action spans under the untempered policy, in order. */
  readonly logprobs?: readonly number[];
  /** The same under the distribution that was sampled from (temperature, top-k, top-p applied). */
  readonly sampledLogprobs?: readonly number[];
  /** The temperature at which the action was sampled. Default 1. */
  readonly temperature?: number;
  /** What the action was held to: its log-probabilities are those among the tokens it allowed. */
  readonly constraint?: Constraint;
}

/**
 * Log-probabilities of the action under the distribution it was drawn from; undefined if unknown.
 */
export function drawnLogprobs(sequence: Sequence): readonly number[] | undefined {
  return (sequence.temperature ?? 1) === 1 ? sequence.logprobs : sequence.sampledLogprobs;
}
