/** The world model of a command: a trained one, or a chat model that is shown examples. */

import {
  type Applies,
  type Given,
  type PlaceOf,
  refuseIgnored,
} from "@pawl/core/config/applies.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import { chatClientOptions, createChatClient } from "@pawl/core/rollout/policies/chat-client.js";
import { type EngineChoice, engineChoice } from "@pawl/training/engines.js";
import { maxTokensOption } from "@pawl/worldmodel/config.js";
import { readDataSets } from "@pawl/worldmodel/dataset.js";
import { fewShotModel } from "@pawl/worldmodel/few-shot.js";
import type { WorldModel } from "@pawl/worldmodel/model.js";
import type { Player } from "@pawl/worldmodel/players.js";
import { type Protocol, protocolOptions } from "@pawl/worldmodel/protocol.js";
import { type LoadedWorldModel, loadWorldModel } from "@pawl/worldmodel/saved.js";
import { createProblems, type Trajectory } from "@pawl/worldmodel/trajectory.js";
import { z } from "zod";
import { type Io, warn } from "./io.js";

const count = z.int().min(1);

/** The options of a chat model as a world model. */
export const chatWorldOptions = {
  chat: z
    .strictObject({
      ...chatClientOptions.shape,
      temperature: z.number().min(0).default(0).describe("sampling temperature"),
    })
    .optional(),
  shots: z.int().min(0).default(3).describe("few-shot training trajectories for a chat model"),
  shotTurns: count.default(20).describe("turns per few-shot trajectory"),
  protocol: protocolOptions,
} as const;

/** The same for commands that have no data set otherwise. */
export const worldOptions = {
  ...chatWorldOptions,
  examples: z
    .array(z.string())
    .default([])
    .describe("data sets of pawl wm data that a chat model's examples come from (--chat.…)"),
  maxTokens: maxTokensOption,
  engine: engineChoice,
} as const;

/** When settings of a world model have an effect. */
const conditions: readonly Applies<WorldSettings>[] = [
  {
    settings: ["shots", "shotTurns"],
    by: ["chat.model"],
    needs: "a chat model as the world model: chat.model",
    holds: ({ chat }) => chat !== undefined,
  },
  {
    settings: ["shotTurns"],
    by: ["shots"],
    needs: "shots above 0",
    holds: ({ shots }) => shots > 0,
  },
  {
    settings: ["maxTokens"],
    by: ["chat.model"],
    needs: "a trained world model; chat.maxTokens is that of a chat model",
    holds: ({ chat }) => chat === undefined,
  },
];

type WorldSettings = Pick<WorldChoice, "chat" | "shots" | "shotTurns" | "maxTokens">;

/** Refuses settings that the kind of world model has no use for. */
export function refuseIgnoredWorld(config: WorldSettings, given: Given, placeOf: PlaceOf): void {
  const { chat, shots, shotTurns, maxTokens } = { ...chatWorldOptions, maxTokens: maxTokensOption };
  const schema = z.object({ chat, shots, shotTurns, maxTokens });
  refuseIgnored(schema, config as z.output<typeof schema>, conditions, given, placeOf);
}

/** What a command was given. */
export interface WorldChoice {
  /** A run or a model folder. */
  readonly model?: string | undefined;
  readonly chat?: z.output<typeof chatWorldOptions.chat>;
  readonly examples: readonly string[];
  readonly shots: number;
  readonly shotTurns: number;
  readonly protocol: Protocol;
  readonly maxTokens: number;
  readonly engine?: EngineChoice;
  readonly seed: number;
}

/** A world model that is open; a chat model has no tokenizer here. */
export type OpenWorld = Pick<LoadedWorldModel, "model" | "dispose"> &
  Partial<Pick<LoadedWorldModel, "tokenizer">>;

/** Opens the world model of a command; `flag` names the setting of a trained one. */
export async function openWorld(
  choice: WorldChoice,
  {
    environment,
    flag,
    io,
  }: { readonly environment: string; readonly flag: string; readonly io: Io },
): Promise<OpenWorld> {
  const { model, chat, examples } = choice;
  if (chat === undefined) {
    if (model === undefined)
      throw new ConfigError(`give the world model: ${flag} RUN, or --chat.…`);
    if (examples.length > 0)
      throw new ConfigError(
        `--examples are shown to a chat model (--chat.…), and ${flag} is trained`,
      );
    return loadWorldModel(model, choice);
  }
  if (model !== undefined)
    throw new ConfigError(`give one world model: ${flag} ${model} or --chat.model ${chat.model}`);
  if (examples.length === 0 && choice.shots > 0)
    throw new ConfigError(
      `--examples: a chat model is shown ${choice.shots} trajectories (--shots): name the data sets of pawl wm data to take them from, or give --shots 0`,
    );
  const problems = createProblems((message) => warn(io, message));
  const { train } = examples.length === 0 ? { train: [] } : readDataSets(examples, problems);
  const own = train.filter(({ env }) => env === environment);
  if (own.length < choice.shots)
    throw new ConfigError(
      `--examples: ${examples.join(", ")} has ${own.length} training trajectories of ${environment}, and --shots asks for ${choice.shots}`,
    );
  return { model: chatWorld(choice, own), dispose: async () => undefined };
}

/** A chat model as a world model, shown some of these trajectories. */
export function chatWorld(
  choice: Pick<WorldChoice, "chat" | "shots" | "shotTurns" | "protocol" | "seed">,
  trajectories: readonly Trajectory[],
): WorldModel {
  const chat = choice.chat!;
  return fewShotModel(createChatClient(chat), {
    name: chat.model,
    examples: createRandom(mixSeed(choice.seed, "shots"))
      .shuffle([...trajectories])
      .slice(0, choice.shots),
    turns: choice.shotTurns,
    protocol: choice.protocol,
  });
}

/** Warns of a player that reads in the world what a model cannot tell it. */
export function warnOfLists({ name, listsActions }: Player, io: Io): void {
  if (listsActions)
    warn(
      io,
      `${name}: its prompts list the possible actions where the world has such a list; a world model has none, so inside it acts without`,
    );
}
