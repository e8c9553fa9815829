/** The model that is trained as a policy: in a world, or asked by an agent's program. */
import { isAgentEnvironment } from "../agents/agent-environment.js";
import { agentPolicy } from "../agents/agent-policy.js";
import type { ActingEngine } from "../engine/engine.js";
import type { Environment } from "../envs/env.js";
import { enginePolicy } from "../rollout/policies/engine.js";
import type { Policy } from "../rollout/policy.js";
import type { PromptStyle } from "../text/prompt.js";
import type { Tokenizer } from "../text/tokenizer.js";

/** The model, where it acts, and how it samples. */
export interface ModelPolicyOptions {
  readonly environment: Environment;
  readonly engine: ActingEngine;
  readonly tokenizer: Tokenizer;
  readonly style: PromptStyle;
  readonly sampling: { readonly maxTokens: number; readonly temperature: number };
  /** Episodes that are played together (default: all of them). */
  readonly batch?: number;
}

/** The model as a policy of its environment. */
export function modelPolicy({ environment, ...model }: ModelPolicyOptions): Policy {
  if (!isAgentEnvironment(environment)) return enginePolicy(model);
  return agentPolicy({
    environment,
    ...model,
    callForm: model.style.callForm,
    tokens: model.style,
  });
}
