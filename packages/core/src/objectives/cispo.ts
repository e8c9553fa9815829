/**
 * CISPO: a token's weight is clipped, not its update, so that every token has a gradient (MiniMax
 * 2025, arXiv 2506.13585, CISPO eq. 4, 5).
 *
 *   w    = sg(min(ratio, 1 + high))
 *   loss = −w·A·log p              d loss / d log p = −w·A
 *
 * sg: without gradient. The paper also writes a lower bound, which it then does not use.
 */
import { less, logprob, min, mul, neg, stopGradient } from "./expression.js";
import { advantage } from "./inputs.js";
import { clipSettings, type OwnPolicyLoss, tokenRatio } from "./policy.js";

const settings = { clipHigh: clipSettings.clipHigh };

export const cispo: OwnPolicyLoss<typeof settings> = {
  title: "CISPO",
  settings,
  token: ({ clipHigh }) => ({
    loss: neg(mul(stopGradient(min(tokenRatio, 1 + clipHigh)), advantage, logprob)),
    metrics: { "policy.clipped": less(1 + clipHigh, tokenRatio) },
  }),
};
