/** The option --agent FILE, which stands for a plugin and its environment (`command-plugins.ts`). */
import { z } from "zod";
import { isAgentKind } from "../agents/agent-kind.js";
import { ConfigError } from "../config/config-error.js";
import { findEnvKind } from "../envs/registry.js";
import { agentSettings } from "../train/train-agent.js";
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

/** How an agent is evaluated with a model that no run of it has trained. */
export function agentBase({ peek }: Given): Base | undefined {
  const name = peek("env.name");
  const kind = name === undefined ? undefined : findEnvKind(name);
  if (kind === undefined || !isAgentKind(kind)) return undefined;
  const { env, prompt, maxTokens, evaluation } = agentSettings(kind.open({}));
  const [split] = evaluation.splits;
  return {
    path: `the defaults of agent ${kind.name}`,
    content: { env, prompt, maxTokens, ...(split !== undefined && { split }) },
    file: "over",
  };
}
