/**
 * A world-model loss: the loss of one observation token. One file per loss; `world-losses.ts` lists
 * them.
 */
import type { z } from "zod";
import { constant, type Expr, exp, logprob } from "./expression.js";

/** A loss's own settings, which become settings of PaW. */
export type LossSettings = Readonly<Record<string, z.ZodType>>;

/** Their values. */
export type LossOptions<S extends LossSettings> = { readonly [K in keyof S]: z.output<S[K]> };

/** The names of the losses that have each setting. */
export function lossesBySetting(
  losses: ReadonlyMap<string, { readonly settings: LossSettings }>,
): ReadonlyMap<string, readonly string[]> {
  const having = new Map<string, readonly string[]>();
  for (const [loss, { settings }] of losses)
    for (const name of Object.keys(settings)) having.set(name, [...(having.get(name) ?? []), loss]);
  return having;
}

/** A loss over log p, where p is the probability of the observation's token. */
export interface WorldLoss<S extends LossSettings = LossSettings> {
  /** Its name in help. */
  readonly title: string;
  readonly settings: S;
  /** The loss of one token, unweighted. */
  token(options: LossOptions<S>): Expr;
  /** 1 if a token has a gradient, else 0 (default: every token has one). */
  readonly kept?: (options: LossOptions<S>) => Expr;
}

/** The probability of the token. */
export const p = exp(logprob);

export const ALL = constant(1);
