/**
 * GSPO: the ratio of a whole response, not of its tokens (Zheng et al. 2025, arXiv 2507.18071, GSPO
 * eq. 5, 7), written token by token (GSPO eq. 13, 14), which has the same gradient where a response
 * has one advantage.
 *
 *   s    = exp(mean over the response's tokens of log p − old log p)
 *   s_t  = sg(s)·p / sg(p)
 *   loss = max(−A·s_t, −A·clamp(s_t, 1 − low, 1 + high))
 *
 * d loss / d log p = −A·s if nothing is clipped, else 0. A response is what answers one prompt: one
 * step of an episode. log s is an input: `packages/core/src/train/response-ratios.ts`. The paper's
 * mean over responses (GSPO eq. 5) is `objective.aggregation response-mean`.
 */
import { z } from "zod";
import { logprob, mul, stopGradient, sub } from "./expression.js";
import { responseLogRatio } from "./inputs.js";
import { boundedRatio, type OwnPolicyLoss, pessimisticLoss } from "./policy.js";

const settings = {
  responseClipLow: z
    .number()
    .min(0)
    .max(1)
    .default(3e-4)
    .describe("ε_low: lower clip range of a whole response's ratio"),
  responseClipHigh: z
    .number()
    .min(0)
    .default(4e-4)
    .describe("ε_high: upper clip range of a whole response's ratio"),
};

export const gspo: OwnPolicyLoss<typeof settings> = {
  title: "GSPO",
  settings,
  token: ({ responseClipLow, responseClipHigh }) => {
    const own = boundedRatio(sub(logprob, stopGradient(logprob)));
    const ratio = mul(boundedRatio(responseLogRatio), own);
    const { loss, isClipped } = pessimisticLoss(ratio, responseClipLow, responseClipHigh);
    return { loss, metrics: { "policy.clipped": isClipped } };
  },
};
