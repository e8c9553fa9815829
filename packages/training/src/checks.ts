/** Configurations that cannot work are refused before the run starts, not after its warm start. */
import { isAgentEnvironment } from "@pawl/agents/agent-environment.js";
import { checkStopOn } from "@pawl/core/alarms/alarms.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { EnvError, type Environment } from "@pawl/core/envs/env.js";
import { UserError } from "@pawl/core/errors.js";
import { updateObjective } from "@pawl/core/objectives/objective.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { type PromptOptions, promptStyle } from "@pawl/core/text/prompt.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { checkBranching } from "@pawl/core/train/branching.js";
import { checkCorrections } from "@pawl/core/train/corrections.js";
import { checkCurriculum } from "@pawl/core/train/curriculum.js";
import { evaluationTasks } from "@pawl/core/train/evaluate.js";
import { checkHints } from "@pawl/core/train/hints.js";
import { checkScoring } from "@pawl/core/train/reference-scores.js";
import { checkStaleness } from "@pawl/core/train/staleness.js";
import { isPreset } from "@pawl/engine-cpu/init.js";
import type { TrainConfig } from "./config.js";
import { checkCritic } from "./open-critic.js";
import { checkDistillation } from "./open-distillation.js";
import { checkWarmStart } from "./teacher-episodes.js";

// Episodes that end because the model's context is full: a configuration in which that must happen
// is refused, some are reported once, and an update of nothing else ends the run.

/** More than this share of an update's episodes is worth a warning. */
const WORTH_A_WARNING = 0.1;

/** Refuses responses that leave no room for a prompt. */
export function checkContext({ model, maxTokens }: Pick<TrainConfig, "model" | "maxTokens">): void {
  if (!isPreset(model.start) || maxTokens < model.maxContext) return;
  throw new ConfigError(
    `maxTokens is ${maxTokens} and model.maxContext ${model.maxContext}: a response of that length leaves no room for a prompt, and every episode would end before its first step. Lower --max-tokens, or raise --model.max-context.`,
  );
}

/** Looks at the episodes of every update: returns a warning the first time, throws if all ended so. */
export function watchContext(): (
  where: string,
  episodes: readonly Episode[],
) => string | undefined {
  let warned = false;
  return (where, episodes) => {
    const played = episodes.filter(({ stop }) => stop !== "broken");
    const full = played.filter(({ stop }) => stop === "context-limit").length;
    if (full === 0) return undefined;
    const advice =
      "The prompt and --max-tokens did not fit into the model's context: lower --max-tokens, show less history (--prompt.history), shorten episodes (--step-limit), or, for a model from scratch, raise --model.max-context.";
    if (full === played.length)
      throw new UserError(
        `${where}: all ${full} episodes ended at the context limit, so there is nothing to learn. ${advice}`,
      );
    if (warned || full <= WORTH_A_WARNING * played.length) return undefined;
    warned = true;
    return `${where}: ${full} of ${played.length} episodes ended at the context limit. ${advice}`;
  };
}

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
  checkCurriculum(config);
  checkHints(config, environment);
  checkBranching(config, environment);
  checkWarmStart(config);
  checkStopOn(config, {
    ...(config.objective.kl === 0 && { kl: "it needs objective.kl above 0" }),
  });
  checkCorrections(config.corrections, environment);
  checkCritic(config);
  checkDistillation(config);
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
  const teacher = "an agent has no teacher that plays";
  if (warmStart.episodes > 0 && warmStart.data.length === 0 && warmStart.runs.length === 0)
    throw new ConfigError(
      `warmStart.episodes: ${teacher}: name what pawl distill recorded with --warm-start.runs, or conversations with --warm-start.data`,
    );
  if (corrections.episodes > 0)
    throw new ConfigError(`corrections.episodes: ${teacher}; set it to 0`);
  if (invalidActionLimit !== undefined)
    throw new ConfigError(
      "invalidActionLimit: an agent decides itself what follows a malformed call; leave it out",
    );
}
