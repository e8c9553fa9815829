/** A checkpoint as a policy of the command line: its options, what its run says, and the engine behind it. */
import { z } from "zod";
import { enginePolicy } from "../rollout/policies/engine.js";
import type { Policy } from "../rollout/policy.js";
import type { PromptStyle } from "../text/prompt.js";
import { type EngineOptions, engineOptions, withoutSampler } from "../train/engines.js";
import { findSavedModel, loadSavedModel } from "../train/saved-model.js";
import type { Peek } from "./command.js";

/** Episodes of a checkpoint that move in step: what the engine keeps of so many prompts fits its memory. */
const BATCH = 256;

/** The options of commands that can play a checkpoint. */
export const checkpointOptions = {
  checkpoint: z
    .string()
    .optional()
    .describe("instead of a policy: a run folder (its latest checkpoint), or a model's folder"),
  engine: engineOptions,
  temperature: z
    .number()
    .min(0)
    .default(0)
    .describe("of a checkpoint; 0 takes the most probable token"),
  maxTokens: z.int().min(1).default(512).describe("longest response of a checkpoint, in tokens"),
} as const;

/** The settings that the run of the checkpoint on the command line was made with, where it has one. */
export function settingsOfCheckpoint(peek: Peek) {
  const folder = peek("checkpoint");
  const config = folder === undefined ? undefined : findSavedModel(folder).config;
  if (folder === undefined || config === undefined) return undefined;
  const { env, prompt, stepLimit, maxTokens, evaluation, engine } = config;
  return {
    path: `the run of ${folder}`,
    content: {
      env,
      prompt,
      maxTokens,
      engine: withoutSampler(engine),
      temperature: evaluation.temperature,
      ...(stepLimit !== undefined && { stepLimit }),
    },
  };
}

/** Loads the checkpoint and plays it; `close` frees its engine. */
export async function checkpointPolicy(
  checkpoint: string,
  options: {
    readonly engine: EngineOptions;
    readonly temperature: number;
    readonly maxTokens: number;
  },
  style: PromptStyle,
): Promise<{ readonly policy: Policy; close(): Promise<void> }> {
  const { engine: settings, temperature, maxTokens } = options;
  const model = await loadSavedModel(findSavedModel(checkpoint), settings);
  return {
    policy: enginePolicy({ ...model, style, batch: BATCH, sampling: { temperature, maxTokens } }),
    close: () => model.engine.dispose(),
  };
}
