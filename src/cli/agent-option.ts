/** The option --agent FILE, which stands for a plugin and its environment (`command-plugins.ts`). */
import { z } from "zod";
import { ConfigError } from "../config/config-error.js";

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
