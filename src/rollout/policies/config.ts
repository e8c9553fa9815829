/** Policies by configuration. */
import { z } from "zod";
import { ConfigError } from "../../config/config-error.js";
import type { Environment } from "../../envs/env.js";
import type { Policy, Situation } from "../policy.js";
import { expertPolicy } from "./expert.js";
import { humanPolicy } from "./human.js";
import { epsilonPolicy, randomPolicy } from "./random.js";

const epsilon = z
  .number()
  .min(0)
  .max(1)
  .default(0)
  .describe("share of steps at which it acts at random instead");

/** The schema of a policy: its name and the options of that kind. */
export const policyConfig = z.discriminatedUnion("name", [
  z.strictObject({ name: z.literal("expert").describe("who plays"), epsilon }),
  z.strictObject({ name: z.literal("random") }),
  z.strictObject({ name: z.literal("human") }),
]);

/** The settings of a policy. */
export type PolicyConfig = z.output<typeof policyConfig>;

/** Makes the policy; `ask` is how a person is asked. */
export function createPolicy(
  config: PolicyConfig,
  environment: Environment,
  ask: (situation: Situation, signal?: AbortSignal) => Promise<string>,
): Policy {
  switch (config.name) {
    case "random":
      return randomPolicy();
    case "human":
      return humanPolicy(ask);
    case "expert": {
      if (environment.expert === undefined) {
        throw new ConfigError(`--policy expert: the ${environment.name} environment has no expert`);
      }
      const expert = expertPolicy(environment.expert);
      return config.epsilon === 0 ? expert : epsilonPolicy(expert, config.epsilon);
    }
  }
}
