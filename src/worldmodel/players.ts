/**
 * Policies by a short text: `expert`, `seeker`, `random`, `epsilon=0.3`, or the folder of a trained
 * agent.
 */
import { existsSync } from "node:fs";
import { ConfigError } from "../config/config-error.js";
import type { Environment } from "../envs/env.js";
import { teacherPolicy } from "../rollout/policies/config.js";
import { enginePolicy } from "../rollout/policies/engine.js";
import { randomPolicy } from "../rollout/policies/random.js";
import type { Policy } from "../rollout/policy.js";
import { type PromptStyle, promptStyle } from "../text/prompt.js";
import type { EngineChoice } from "../train/engine-choice.js";
import { openSavedModel } from "../train/open-model.js";
import { findSavedModel } from "../train/saved-model.js";

/** A policy with its prompts. */
export interface Player {
  readonly name: string;
  readonly policy: Policy;
  readonly style: PromptStyle;
  /** Whether it looks at the true state of the world, or at its list of actions. */
  readonly looksInside: boolean;
  dispose(): Promise<void>;
}

/** How trained agents act. */
export interface PlayerOptions {
  /** Default: that of the agent's own evaluation. */
  readonly temperature?: number | undefined;
  /** Default: the engine of the agent's own run. */
  readonly engine?: EngineChoice | undefined;
}

/** The player that a text names; an unknown text is an error that lists the options. */
export async function openPlayer(
  text: string,
  environment: Environment,
  options: PlayerOptions = {},
): Promise<Player> {
  const scripted = scriptedPolicy(text, environment);
  if (scripted !== undefined) {
    return {
      name: text,
      policy: scripted,
      style: promptStyle(environment.prompt, { style: "compact", history: "all" }),
      looksInside: true,
      dispose: async () => undefined,
    };
  }
  if (!existsSync(text)) {
    throw new ConfigError(
      `"${text}" is not a policy: expected expert, seeker, random, epsilon=SHARE, or the folder of a run of pawl train`,
    );
  }
  const saved = findSavedModel(text);
  const model = await openSavedModel(saved, options.engine);
  const compact = { style: "compact", history: "all" } as const;
  const style = promptStyle(environment.prompt, saved.config?.prompt ?? compact, model.tokenizer);
  const temperature = options.temperature ?? saved.config?.evaluation.temperature ?? 0;
  const maxTokens = saved.config?.maxTokens ?? 64;
  return {
    name: text,
    policy: enginePolicy({ ...model, style, sampling: { temperature, maxTokens }, name: text }),
    style,
    looksInside: false,
    dispose: () => model.engine.dispose(),
  };
}

function scriptedPolicy(text: string, environment: Environment): Policy | undefined {
  if (text === "random") return randomPolicy();
  if (text === "seeker") return teacherPolicy(environment, "seeker", 0);
  const share = /^epsilon=(0|1|0?\.\d+|1\.0+)$/.exec(text)?.[1];
  if (text !== "expert" && share === undefined) return undefined;
  return teacherPolicy(environment, "expert", Number(share ?? 0));
}
