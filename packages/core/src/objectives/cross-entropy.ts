/**
 * Cross-entropy of the observation's token (PaW eq. 5).
 *
 *   −log p           d/d log p = −1
 */
import { logprob, neg } from "./expression.js";
import type { WorldLoss } from "./world-loss.js";

export const crossEntropy: WorldLoss<Record<never, never>> = {
  title: "cross-entropy",
  settings: {},
  token: () => neg(logprob),
};
