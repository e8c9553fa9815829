/** Configurations that cannot work are refused before the run starts, not after its warm start. */
import { isAgentEnvironment } from "@pawl/agents/agent-environment.js";
import { checkStopOn } from "@pawl/core/alarms/alarms.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { EnvError, type Environment } from "@pawl/core/envs/env.js";
import { updateObjective } from "@pawl/core/objectives/objective.js";
import { type PromptOptions, promptStyle } from "@pawl/core/text/prompt.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { checkCorrections } from "@pawl/core/train/corrections.js";
import { evaluationTasks } from "@pawl/core/train/evaluate.js";
import { checkScoring } from "@pawl/core/train/reference-scores.js";
import { checkStaleness } from "@pawl/core/train/staleness.js";
import { isPreset } from "@pawl/engine-cpu/init.js";
import type { TrainConfig } from "./config.js";
import { checkContext } from "./context-limit.js";
import { checkCritic } from "./open-critic.js";
import { checkWarmStart } from "./transcript-samples.js";

/** A larger step undoes what a pretrained model has learnt. */
const MAX_RATE = 1e-3;

/** A line for each setting of models from scratch that a pretrained chat model is trained with. */
export function contradictions(
  { model, prompt, warmStart, updates, optimizer, paw }: TrainConfig,
  tokenizer: Pick<Tokenizer, "hasChatTemplate">,
): readonly string[] {
  if (isPreset(model.start) || !tokenizer.hasChatTemplate) return [];
  const chat = `${model.start} is a chat model`;
  const rates = [
    ...(warmStart.episodes > 0
      ? [["warmStart.sft.optimizer", warmStart.sft.optimizer] as const]
      : []),
    ...(updates > 0 ? [["optimizer", optimizer] as const] : []),
  ];
  return [
    ...(prompt.style === "compact"
      ? [
          `prompt.style compact: ${chat} and was not trained on such prompts; its own form is --prompt.style chat`,
        ]
      : []),
    ...rates.flatMap(([path, { learningRate }]) =>
      learningRate > MAX_RATE
        ? [
            `${path}.learningRate ${learningRate}: ${chat}, and steps above ${MAX_RATE} undo what it knows; recipes/pretrained.ts takes 2e-4 to imitate and 2e-5 for RL, with adapters 1e-3 and 1e-4`,
          ]
        : [],
    ),
    ...(paw.loss !== "off" && updates > 0
      ? [
          `paw.loss ${paw.loss}: ${chat}, and such a model has gained nothing from predicting observations here (docs/results/observations.md); --paw.loss off`,
        ]
      : []),
  ];
}

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
function checkAgentConfig(config: TrainConfig): void {
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
