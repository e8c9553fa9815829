/**
 * The advantage estimators. To add one, write a file beside these and add a line here
 * (CONTRIBUTING.md).
 */
import { gigpoEstimator } from "./gigpo.js";
import { grpoEstimator } from "./grpo.js";
import { ppoEstimator } from "./ppo.js";
import { rlooEstimator } from "./rloo.js";

/** In the order that help lists them. */
export const estimators = [
  grpoEstimator, // the default
  rlooEstimator,
  gigpoEstimator,
  ppoEstimator,
] as const;
