/** The option --agent FILE, which stands for a plugin and its environment (`command-plugins.ts`). */

import { isAgentKind } from "@pawl/agents/agent-kind.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { agentSettings } from "@pawl/training/train-agent.js";
import { z } from "zod";
import type { Base, Given } from "./command.js";

/** The option of commands that can run an agent. */
export const agentOption = z
  .string()
  .optional()
  .describe("run this agent's program instead of an environment (a file, such as ./agent.ts)");

/** A file cannot name an agent this way: it is loaded before the file is read. */
export function refuseAgentInFile(agent: string | undefined): void {
  if (agent !== undefined)
    throw new ConfigError(
      `agent: ${agent}: expected the flag --agent; in a file, plugins: [FILE] and env: NAME say the same`,
    );
}

/** How an agent is run with a model that no run of it has trained: on what it is evaluated, or taught. */
export function agentBase(
  { peek }: Given,
  on: "evaluated" | "taught" = "evaluated",
): Base | undefined {
  const name = peek("env.name");
  const kind = name === undefined ? undefined : findEnvKind(name);
  if (kind === undefined || !isAgentKind(kind)) return undefined;
  const { env, prompt, maxTokens, ...splits } = agentSettings(kind.open({}));
  const split = on === "taught" ? splits.split : splits.evaluation.splits[0];
  return {
    path: `the defaults of agent ${kind.name}`,
    content: { env, prompt, maxTokens, ...(split !== undefined && { split }) },
    file: "over",
  };
}
