/** A world-model loss: what one token of an observation costs. One loss a file; `world-losses.ts` lists them. */
import type { z } from "zod";
import { constant, type Expr, exp, logprob } from "./expression.js";

/** Settings of a loss's own, which become settings of PaW. */
export type LossSettings = Readonly<Record<string, z.ZodType>>;

/** Their values. */
export type LossOptions<S extends LossSettings> = { readonly [K in keyof S]: z.output<S[K]> };

/** A loss over log p, p being the probability of the observation's token. */
export interface WorldLoss<S extends LossSettings = LossSettings> {
  /** What it is called in help. */
  readonly title: string;
  readonly settings: S;
  /** The loss of one token, before any weight. */
  token(options: LossOptions<S>): Expr;
  /** 1 where a token has a gradient, else 0; absent: every token has one. */
  readonly kept?: (options: LossOptions<S>) => Expr;
}

/** The probability of the token. */
export const p = exp(logprob);

/** Every token. */
export const ALL = constant(1);
