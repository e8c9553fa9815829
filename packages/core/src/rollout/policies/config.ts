/** Policies by configuration. */
import { z } from "zod";
import { addedParts, addPart, schemaOfParts } from "../../added-parts.js";
import { ConfigError } from "../../config/config-error.js";
import { type Environment, isRemote, type Teacher } from "../../envs/env.js";
import { UserError } from "../../errors.js";
import type { PromptStyle } from "../../text/prompt.js";
import type { Policy, Situation } from "../policy.js";
import { chatOptions, chatPolicy } from "./chat.js";
import { epsilonPolicy, randomPolicy } from "./random.js";

const epsilon = z
  .number()
  .min(0)
  .max(1)
  .default(0)
  .describe("ε: probability of taking a random action instead");

const BUILT_IN = [
  z.strictObject({ name: z.literal("expert").describe("who plays (default: expert)"), epsilon }),
  z.strictObject({ name: z.literal("seeker"), epsilon }),
  z.strictObject({ name: z.literal("random") }),
  z.strictObject({ name: z.literal("human") }),
  z.strictObject({ name: z.literal("chat"), ...chatOptions.shape }),
] as const;

/** A policy of one's own, for a plugin. */
export interface PolicyKind<Options extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  /** The schema of its options. */
  readonly options: Options;
  create(options: z.output<Options>, context: PolicyContext): Policy;
}

const plugins = addedParts<PolicyKind>("policies");

/** The schema of a policy: its name and the options of that kind. */
export const policyConfig = schemaOfParts("policies", () => {
  const added = [...plugins.values()].map(({ name, options }) =>
    options.safeExtend({ name: z.literal(name) }),
  );
  return z.discriminatedUnion("name", [...BUILT_IN, ...added] as unknown as typeof BUILT_IN);
});

/** The settings of a policy. */
export type PolicyConfig = z.output<ReturnType<typeof policyConfig>>;

/** Adds a policy, so that commands can name it. */
export function registerPolicy(kind: PolicyKind): void {
  const { name, options, create } = kind;
  if (options?._zod?.def?.type !== "object" || typeof create !== "function")
    throw new UserError(
      `policy "${name}": expected { name, options, create(options, context) }, where options is a zod object`,
    );
  const taken = [...BUILT_IN.map(({ shape }) => shape.name.value), ...plugins.keys()];
  if (taken.includes(name))
    throw new UserError(`there is a policy "${name}" already; choose another name`);
  if ("name" in options.shape)
    throw new UserError(
      `policy "${name}": an option cannot be called name; it is the policy's own`,
    );
  addPart("policies", name, kind);
}

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
    default: {
      const { name, ...options } = config as PolicyConfig;
      return plugins.get(name)!.create(options, context);
    }
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
    throw new ConfigError(
      `the ${environment.name} environment has no ${name}: let another policy play (--policy random, chat or human, or --checkpoint RUN), or give the environment one (docs/tutorials/own-environment.md)`,
    );
  }
  const policy = expertPolicy(player, name);
  return epsilon === 0 ? policy : epsilonPolicy(policy, epsilon);
}

/** Asks a person for each action; the caller decides how (a terminal, a web page). */
function humanPolicy(ask: (situation: Situation, signal?: AbortSignal) => Promise<string>): Policy {
  return {
    name: "human",
    batch: 1,
    async act(situations, signal) {
      const replies = [];
      for (const situation of situations) {
        replies.push({ response: situation.format(await ask(situation, signal)) });
      }
      return replies;
    },
  };
}

/** Plays an environment's scripted expert, which inspects the state of its world. */
export function expertPolicy(expert: Teacher, name = "expert"): Policy {
  return {
    name,
    batch: 1,
    act: (situations) =>
      Promise.all(
        situations.map(async ({ env, format }) => {
          if (isRemote(env)) await env.prepareTeacher?.();
          return { response: format(expert(env)) };
        }),
      ),
  };
}
