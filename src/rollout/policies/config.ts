/** Policies by configuration. */
import { z } from "zod";
import { ConfigError } from "../../config/config-error.js";
import type { Environment } from "../../envs/env.js";
import type { PromptStyle } from "../../text/prompt.js";
import type { Policy, Situation } from "../policy.js";
import { chatOptions, chatPolicy } from "./chat.js";
import { expertPolicy } from "./expert.js";
import { humanPolicy } from "./human.js";
import { epsilonPolicy, randomPolicy } from "./random.js";

const epsilon = z
  .number()
  .min(0)
  .max(1)
  .default(0)
  .describe("ε: probability of taking a random action instead");

/** The schema of a policy: its name and the options of that kind. */
export const policyConfig = z.discriminatedUnion("name", [
  z.strictObject({ name: z.literal("expert").describe("who plays (default: expert)"), epsilon }),
  z.strictObject({ name: z.literal("seeker"), epsilon }),
  z.strictObject({ name: z.literal("random") }),
  z.strictObject({ name: z.literal("human") }),
  z.strictObject({ name: z.literal("chat"), ...chatOptions.shape }),
]);

/** The settings of a policy. */
export type PolicyConfig = z.output<typeof policyConfig>;

/** What policies need to know about the rollout they play in. */
export interface PolicyContext {
  readonly environment: Environment;
  readonly style: PromptStyle;
  /** How to ask a person. */
  ask(situation: Situation, signal?: AbortSignal): Promise<string>;
}

/** Creates the policy that the settings describe. */
export function createPolicy(config: PolicyConfig, context: PolicyContext): Policy {
  const { environment, style } = context;
  if (style.promptTokens !== undefined && config.name !== "chat")
    throw new ConfigError(
      `prompt.maxTokens counts a model's tokens, and the policy ${config.name} has none: leave it out`,
    );
  switch (config.name) {
    case "random":
      return randomPolicy();
    case "human":
      return humanPolicy(context.ask);
    case "chat": {
      const { name: _, ...options } = config;
      return chatPolicy(options, style);
    }
    case "expert":
    case "seeker":
      return teacherPolicy(environment, config.name, config.epsilon);
  }
}

/** A scripted player of the environment that takes random actions with probability `epsilon`. */
export function teacherPolicy(
  environment: Environment,
  name: "expert" | "seeker",
  epsilon: number,
): Policy {
  const player = environment[name];
  if (player === undefined) {
    throw new ConfigError(`the ${environment.name} environment has no ${name}`);
  }
  const policy = expertPolicy(player, name);
  return epsilon === 0 ? policy : epsilonPolicy(policy, epsilon);
}
