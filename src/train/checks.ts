/** Configurations that cannot work are refused before the run starts, not after its warm start. */
import { isAgentEnvironment } from "../agents/agent-environment.js";
import { checkStopOn } from "../alarms/alarms.js";
import { EnvError, type Environment } from "../envs/env.js";
import { updateObjective } from "../objectives/objective.js";
import { promptStyle } from "../text/prompt.js";
import { checkAgentConfig } from "./agent-checks.js";
import type { TrainConfig } from "./config.js";
import { checkContext } from "./context-limit.js";
import { checkCorrections } from "./corrections.js";
import { evaluationTasks } from "./evaluate.js";
import { checkCritic } from "./open-critic.js";
import { checkScoring } from "./reference-scores.js";
import { checkStaleness } from "./staleness.js";
import { checkWarmStart } from "./transcript-samples.js";

/**
 * Throws if a configuration asks for tasks that do not exist, or gradients that cannot be computed.
 */
export function checkConfig(config: TrainConfig, environment: Environment): void {
  if (isAgentEnvironment(environment)) checkAgentConfig(config);
  // The settings of prompts are checked when a style is made of them.
  promptStyle(environment.prompt, config.prompt);
  checkContext(config);
  checkStaleness(config);
  checkScoring(config);
  checkWarmStart(config);
  checkStopOn(config, {
    ...(config.objective.kl === 0 && { kl: "it needs objective.kl above 0" }),
  });
  checkCorrections(config.corrections, environment);
  checkCritic(config);
  // A plugin's loss may be no expression: say so now.
  updateObjective(config.objective, config.paw, { critic: false });
  if (environment.tasks(config.split).length === 0)
    throw new EnvError(
      `there is nothing to learn on: split "${config.split}" of ${environment.name} has no task`,
    );
  const { every, splits, ...which } = config.evaluation;
  if (every > 0) for (const split of splits) evaluationTasks(environment, split, which);
}
