/**
 * Supervised learning: cross-entropy of tokens that are known to be right, each with its weight.
 *
 *   loss = −w·log p
 */
import { constant, exp, input, logprob, neg, type Objective } from "./expression.js";
import { counted, weighted } from "./inputs.js";

const weight = input("weight");

/** Cross-entropy weighted by the input `weight`; sum to 1 over a batch to make it a mean. */
export const supervisedObjective: Objective = {
  loss: weighted(weight, neg(logprob)),
  metrics: {
    "supervised.tokens": counted(weight, constant(1)),
    "supervised.loss": weighted(weight, neg(logprob)),
    "supervised.p": counted(weight, exp(logprob)),
  },
};
