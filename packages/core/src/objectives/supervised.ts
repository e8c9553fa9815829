/**
 * Supervised learning: weighted cross-entropy of target tokens.
 *
 *   loss = −w·log p
 */
import { constant, exp, input, logprob, neg, type Objective } from "./expression.js";
import { counted, weighted } from "./inputs.js";

const weight = input("weight");

/**
 * Cross-entropy weighted by the input `weight`; it is a mean if the weights of a batch sum to 1.
 */
export const supervisedObjective: Objective = {
  loss: weighted(weight, neg(logprob)),
  metrics: {
    "supervised.tokens": counted(weight, constant(1)),
    "supervised.loss": weighted(weight, neg(logprob)),
    "supervised.p": counted(weight, exp(logprob)),
  },
};
