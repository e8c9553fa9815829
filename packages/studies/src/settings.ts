/**
 * The settings of a comparison: where could world modelling matter? Each has its own warm start.
 */
import { ConfigError } from "@pawl/core/config/config-error.js";
import { mergeTrees } from "@pawl/core/config/settings-tree.js";
import { didYouMean } from "@pawl/core/text/nearest.js";
import type { TrainConfig } from "@pawl/training/config.js";

/** Partial configurations. */
export type Changes = Readonly<Record<string, unknown>>;

interface Condition {
  readonly does: string;
  readonly change: (base: TrainConfig) => Changes;
}

/** Conditions by name; a setting is one of them, or several joined by `+`. */
export const conditions: Readonly<Record<string, Condition>> = {
  default: { does: "the recipe as it is", change: () => ({}) },
  "whole-history": {
    does: "prompts hold the full history, so prediction teaches recall",
    change: () => ({ prompt: { history: "all" } }),
  },
  "two-step": {
    does: "prompts hold two steps of history, as in the paper",
    change: () => ({ prompt: { history: 2 } }),
  },
  "actions-only": {
    does: "the warm start imitates actions and predicts nothing",
    change: () => ({ warmStart: { sft: { observationWeight: 0, mean: "each" } } }),
  },
  observations: {
    does: "the warm start learns observations too: their mean weighs 0.3, that of actions 1",
    change: () => ({ warmStart: { sft: { observationWeight: 0.3, mean: "each" } } }),
  },
  sparse: {
    does: "a start model that rarely succeeds: a third of the warm start's episodes",
    change: ({ warmStart: { episodes } }) => ({
      warmStart: { episodes: Math.max(1, Math.round(episodes / 3)) },
    }),
  },
  noise: {
    does: "observations carry brands and ids that cannot be predicted",
    // Every object has up to three more words.
    change: ({ model }) => ({
      env: { noise: "all" },
      model: { maxContext: 2 * model.maxContext },
    }),
  },
  tiny: { does: "the smallest model", change: () => ({ model: { start: "tiny" } }) },
  small: { does: "a larger model", change: () => ({ model: { start: "small" } }) },
};

/** What a setting such as `noise+two-step` changes in a configuration. */
export function settingConfig(setting: string, base: TrainConfig): Changes {
  let config: Changes = base;
  for (const part of setting.split("+")) {
    const condition = conditions[part];
    if (condition === undefined) {
      const names = Object.keys(conditions);
      throw new ConfigError(
        `--settings: expected ${names.join(", ")}, or several joined by +, got "${part}".${didYouMean(part, names)}`,
      );
    }
    config = mergeTrees(config, condition.change(config as TrainConfig));
  }
  return config;
}

/** What a setting means, in words. */
export function describeSetting(setting: string): string {
  return setting
    .split("+")
    .map((part) => conditions[part]?.does ?? part)
    .join("; ");
}
