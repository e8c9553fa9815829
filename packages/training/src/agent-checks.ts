/** Settings that do not apply to an agent's own program are refused, not ignored. */
import { ConfigError } from "@pawl/core/config/config-error.js";
import type { PromptOptions } from "@pawl/core/text/prompt.js";
import type { TrainConfig } from "./config.js";

/** Throws if prompts are described: the agent writes its own. How they become tokens is ours. */
export function checkAgentPrompt(options: PromptOptions): void {
  const { style, toolCalls: _, observationEnd: __, tokens: ___, ...others } = options;
  if (style !== "chat")
    throw new ConfigError(
      `prompt.style ${style}: an agent talks to the model in its chat template; expected chat`,
    );
  for (const [name, value] of Object.entries(others))
    if (value !== undefined)
      throw new ConfigError(`prompt.${name}: an agent writes its own prompts; leave it out`);
}

/** Throws if training asks for what an agent does not have: a teacher, or single actions. */
export function checkAgentConfig(config: TrainConfig): void {
  checkAgentPrompt(config.prompt);
  const { warmStart, corrections, invalidActionLimit } = config;
  const teacher = "an agent has no teacher to imitate; set it to 0";
  if (warmStart.episodes > 0 && warmStart.data.length === 0)
    throw new ConfigError(`warmStart.episodes: ${teacher}`);
  if (corrections.episodes > 0) throw new ConfigError(`corrections.episodes: ${teacher}`);
  if (invalidActionLimit !== undefined)
    throw new ConfigError(
      "invalidActionLimit: an agent decides itself what follows a malformed call; leave it out",
    );
}
