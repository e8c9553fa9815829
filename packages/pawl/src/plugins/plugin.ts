/**
 * A plugin: a module of a user's own that adds environments, rewards, estimators, losses, policies
 * and prompt styles. What it adds is checked here, and can then be named like what is built in.
 */

import { type RewardFunction, registerReward } from "@pawl/agents/tasks/rewards.js";
import { registerEstimator } from "@pawl/core/advantages/advantages.js";
import type { Estimator, EstimatorSettings } from "@pawl/core/advantages/estimator.js";
import type { EnvKind } from "@pawl/core/envs/env.js";
import { registerEnv } from "@pawl/core/envs/registry.js";
import { UserError } from "@pawl/core/errors.js";
import { registerPolicyLoss } from "@pawl/core/objectives/objective.js";
import { registerWorldLoss } from "@pawl/core/objectives/paw-options.js";
import type { PolicyLoss } from "@pawl/core/objectives/policy-losses.js";
import type { WorldLoss } from "@pawl/core/objectives/world-loss.js";
import { type PolicyKind, registerPolicy } from "@pawl/core/rollout/policies/config.js";
import { didYouMean } from "@pawl/core/text/nearest.js";
import { type PromptStyleKind, registerPromptStyle } from "@pawl/core/text/prompt.js";

/** What a plugin adds; every part is optional, and each has its own type of settings. */
export interface Plugin {
  /** Named by `env`. */
  // biome-ignore lint/suspicious/noExplicitAny: of any type of options.
  readonly environments?: readonly EnvKind<any>[];
  /** Rewards of finished episodes, named by `env.reward` of the environment `tasks`. */
  readonly rewards?: Readonly<Record<string, RewardFunction>>;
  /** Named by `advantage`. */
  // biome-ignore lint/suspicious/noExplicitAny: of any type of settings.
  readonly estimators?: readonly Estimator<any>[];
  /** Losses of action tokens, named by `objective.loss`. */
  // biome-ignore lint/suspicious/noExplicitAny: of any type of settings.
  readonly policyLosses?: Readonly<Record<string, PolicyLoss<any>>>;
  /** Losses of observation tokens, named by `paw.loss`. */
  // biome-ignore lint/suspicious/noExplicitAny: of any type of settings.
  readonly worldLosses?: Readonly<Record<string, WorldLoss<any>>>;
  /** Named by `policy`. */
  // biome-ignore lint/suspicious/noExplicitAny: of any type of options.
  readonly policies?: readonly PolicyKind<any>[];
  /** Named by `prompt.style`. */
  readonly promptStyles?: readonly PromptStyleKind[];
}

/** A plugin with its parts checked by the compiler: `export default definePlugin({ … })`. */
export function definePlugin(plugin: Plugin): Plugin {
  return plugin;
}

type Registrations = { readonly [K in keyof Required<Plugin>]: (part: never) => void };

/** How each part is registered. */
const PARTS: Registrations = {
  environments: listOf<EnvKind>(registerEnv),
  rewards: recordOf<RewardFunction>(registerReward),
  estimators: listOf<Estimator<EstimatorSettings>>(registerEstimator),
  policyLosses: recordOf<PolicyLoss>(registerPolicyLoss),
  worldLosses: recordOf<WorldLoss>(registerWorldLoss),
  policies: listOf<PolicyKind>(registerPolicy),
  promptStyles: listOf<PromptStyleKind>(registerPromptStyle),
};

/** Registers everything that a plugin adds; throws at the first part that cannot be. */
export function registerPlugin(plugin: unknown): asserts plugin is Plugin {
  const names = Object.keys(PARTS);
  const expected = `expected export default definePlugin({ … }) with one or more of ${names.join(", ")}`;
  if (plugin === undefined) throw new UserError(`there is no default export; ${expected}`);
  if (typeof plugin !== "object" || plugin === null || Array.isArray(plugin))
    throw new UserError(`the default export is ${describe(plugin)}; ${expected}`);
  const parts = Object.entries(plugin).filter(([, part]) => part !== undefined);
  const unknown = parts.find(([name]) => !Object.hasOwn(PARTS, name))?.[0];
  if (unknown !== undefined)
    throw new UserError(
      `the default export has "${unknown}", which is no part of a plugin.${didYouMean(unknown, names)} ${expected[0]!.toUpperCase()}${expected.slice(1)}`,
    );
  if (parts.length === 0) throw new UserError(`the default export adds nothing; ${expected}`);
  for (const [name, part] of parts)
    try {
      PARTS[name as keyof Registrations](part as never);
    } catch (error) {
      if (error instanceof UserError)
        throw new UserError(`${name}: ${error.message}`, { cause: error });
      throw error;
    }
}

function listOf<T>(register: (one: T) => void) {
  return (part: readonly T[]): void => {
    if (!Array.isArray(part)) throw new UserError(`expected a list, found ${describe(part)}`);
    for (const one of part) register(one);
  };
}

function recordOf<T>(register: (name: string, one: T) => void) {
  return (part: Readonly<Record<string, T>>): void => {
    if (typeof part !== "object" || part === null || Array.isArray(part))
      throw new UserError(`expected an object by name, found ${describe(part)}`);
    for (const [name, one] of Object.entries(part)) register(name, one);
  };
}

function describe(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : `a ${typeof value}`;
}
