/** What cannot work is refused before there is a run, and not when its warm start is done. */
import { EnvError, type Environment } from "../envs/env.js";
import type { TrainConfig } from "./config.js";
import { checkCorrections } from "./corrections.js";
import { checkCritic } from "./critic.js";
import { evaluationTasks } from "./evaluate.js";
import { checkGradientCap } from "./gradient-cap.js";
import { checkGradientLength } from "./gradient-length.js";

/** Throws where a configuration asks for tasks that are not there, or for gradients that cannot be. */
export function checkConfig(config: TrainConfig, environment: Environment): void {
  checkGradientCap(config);
  checkCorrections(config.corrections, environment);
  checkCritic(config);
  checkGradientLength(config);
  if (environment.tasks(config.split).length === 0)
    throw new EnvError(
      `there is nothing to learn on: split "${config.split}" of ${environment.name} has no task`,
    );
  const { every, splits, tasks } = config.evaluation;
  if (every > 0) for (const split of splits) evaluationTasks(environment, split, tasks);
}
