/**
 * GAE, generalised advantage estimation, for PPO's critic (Schulman et al. 2016, arXiv 1506.02438,
 * GAE eq. 16), token by token.
 *
 *   δ_i = r_i + γ·V_{i+1} − V_i
 *   A_i = δ_i + γλ·A_{i+1}
 *   value target = A_i + V_i
 *
 * `response`: each response is its own episode, whose last token earns the step's score s_i.
 * `episode`: the tokens of all responses of an episode are concatenated, and the last token of a
 * response earns the step's own reward. There γ and λ count turns, not tokens (within a response
 * both are 1), so that how far a reward reaches back does not depend on how long the policy's
 * responses are. After the last token V = 0, also when a step limit ended the episode, as in the
 * reference implementation.
 */
import { mean, variance } from "./statistics.js";

/** How far advantages look ahead. */
export interface GaeOptions {
  readonly gamma: number;
  readonly lambda: number;
  readonly scope: "response" | "episode";
}

/** One number per action token of an episode: steps × tokens. */
export type TokenTable = readonly (readonly number[])[];

/** Advantages and value targets of one episode, both steps × tokens. */
export interface EpisodeGae {
  readonly advantages: TokenTable;
  readonly returns: TokenTable;
}

/** Advantages of one episode; `earned` is the reward of the last token of each step. */
export function gae(
  earned: readonly number[],
  values: TokenTable,
  options: GaeOptions,
): EpisodeGae {
  const { gamma, lambda, scope } = options;
  const advantages: number[][] = values.map((tokens) => new Array<number>(tokens.length));
  let nextValue = 0;
  let nextAdvantage = 0;
  for (let t = values.length - 1; t >= 0; t--) {
    const tokens = values[t]!;
    for (let i = tokens.length - 1; i >= 0; i--) {
      const isLast = i === tokens.length - 1;
      if (isLast && scope === "response") nextValue = nextAdvantage = 0;
      const decays = scope === "response" || isLast;
      const [g, l] = decays ? [gamma, lambda] : [1, 1];
      const delta = (isLast ? earned[t]! : 0) + g * nextValue - tokens[i]!;
      nextAdvantage = delta + g * l * nextAdvantage;
      nextValue = tokens[i]!;
      advantages[t]![i] = nextAdvantage;
    }
  }
  const returns = advantages.map((tokens, t) => tokens.map((a, i) => a + values[t]![i]!));
  return { advantages, returns };
}

/** Shifts and scales the tokens of a whole update to mean 0 and variance 1. */
export function whitener(advantages: readonly number[]): (advantage: number) => number {
  const center = mean(advantages);
  const scale = 1 / Math.sqrt(variance(advantages) + 1e-8);
  return (advantage) => (advantage - center) * scale;
}
