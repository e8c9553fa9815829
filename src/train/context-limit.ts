/**
 * Episodes that end because the model's context is full: a configuration in which that must happen
 * is refused, some are reported once, and an update of nothing else ends the run.
 */
import { ConfigError } from "../config/config-error.js";
import { isPreset } from "../engine/embedded/init.js";
import { UserError } from "../errors.js";
import type { Episode } from "../rollout/episode.js";
import type { TrainConfig } from "./config.js";

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
