/**
 * Where a world-model loss puts its gradient: the diagnostic of PaW appendix A.4 (figure 2c).
 *
 * The size of a token's gradient is |d loss / d z|, where z is the logit of the target token. As d
 * log p / d z = 1 − p, it is |d loss / d log p|·(1 − p): 1 − p for CE, p·(1 − p) for MAE. It is
 * summed over noisy tokens (random identifiers, brand names) and over the meaningful rest, and
 * divided by the sum over both.
 */
import { derivative } from "./expression-derivative.js";
import { evaluateTokens } from "./expression-evaluate.js";
import { type WorldOptions, worldTokenLoss } from "./world.js";

/** How a loss divides its gradient; both shares are 0 if there is no gradient at all. */
export interface GradientShare {
  readonly noisy: number;
  readonly meaningful: number;
  /** The total gradient size that the shares divide. */
  readonly total: number;
}

/**
 * The share of the gradient on noisy tokens and on the others, from the probability of each token.
 */
export function gradientShare(
  probabilities: ArrayLike<number>,
  isNoisy: ArrayLike<number | boolean>,
  options: WorldOptions,
): GradientShare {
  if (isNoisy.length !== probabilities.length)
    throw new Error(
      `the mask of noisy tokens has ${isNoisy.length} entries; expected one for each of ${probabilities.length} tokens`,
    );
  const [slopes] = evaluateTokens([derivative(worldTokenLoss(options), "logprob")], {
    count: probabilities.length,
    quantities: { logprob: Float64Array.from(probabilities, Math.log) },
    inputs: {},
  });
  let noisy = 0;
  let meaningful = 0;
  for (let i = 0; i < probabilities.length; i++) {
    const size = Math.abs(slopes![i]!) * (1 - probabilities[i]!);
    if (isNoisy[i]) noisy += size;
    else meaningful += size;
  }
  const total = noisy + meaningful;
  const share = (part: number) => (total === 0 ? 0 : part / total);
  return { noisy: share(noisy), meaningful: share(meaningful), total };
}
