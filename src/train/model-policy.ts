/** The model that is trained as a policy: the environment's own, or one that acts in its world. */
import type { Environment } from "../envs/env.js";
import { enginePolicy } from "../rollout/policies/engine.js";
import { type ActingModel, bringsPolicy, type Policy } from "../rollout/policy.js";

/** The model, and where it acts. */
export interface ModelPolicyOptions extends ActingModel {
  readonly environment: Environment;
}

/** The model as a policy of its environment. */
export function modelPolicy({ environment, ...model }: ModelPolicyOptions): Policy {
  return bringsPolicy(environment) ? environment.policy(model) : enginePolicy(model);
}
