/** Default settings: a recipe for each environment. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { isAgentEnvironment } from "@pawl/agents/agent-environment.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import type { ConfigLayer } from "@pawl/core/config/resolve.js";
import { coerce } from "@pawl/core/config/settings.js";
import { type SettingsTree, valueAt } from "@pawl/core/config/settings-tree.js";
import { EnvError, type Environment } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { UserError } from "@pawl/core/errors.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { isPreset } from "@pawl/engine-cpu/init.js";
import { isFetched, parseHubName, previewHubModel } from "@pawl/models/fetch-model.js";
import { openGguf } from "@pawl/models/gguf/gguf-file.js";
import { findSavedModel, settingsOfModel } from "@pawl/training/saved-model.js";
import { agentSettings } from "@pawl/training/train-agent.js";
import { simulatedSplit, simulator, worldOf } from "@pawl/worldmodel/simulator-kind.js";
import { alfworld } from "../../../../recipes/alfworld.js";
import { desk } from "../../../../recipes/desk.js";
import { common, laptop } from "../../../../recipes/laptop.js";
import { pretrained, RANK, type ScratchRecipe } from "../../../../recipes/pretrained.js";
import { quick } from "../../../../recipes/quick.js";
import { scienceworld } from "../../../../recipes/scienceworld.js";
import { search } from "../../../../recipes/search.js";
import { tauRetail } from "../../../../recipes/tau-retail.js";
import { terminal } from "../../../../recipes/terminal.js";
import { textworld } from "../../../../recipes/textworld.js";
import { officialWebshop, webshop } from "../../../../recipes/webshop.js";
import { engineOfRun } from "./checkpoint-policy.js";
import type { Base, Given, Peek } from "./command.js";
import { envNameOf } from "./env-options.js";
import { isWithoutRun } from "./model-name.js";
import { DEFAULT_WORLD } from "./worlds.js";

/** The recipes of the environments of this package. */
const RECIPES: Readonly<Record<string, ConfigLayer>> = {
  [DEFAULT_WORLD]: { path: "recipes/laptop.ts", content: laptop },
  alfworld: { path: "recipes/alfworld.ts", content: alfworld },
  webshop: { path: "recipes/webshop.ts", content: webshop },
  scienceworld: { path: "recipes/scienceworld.ts", content: scienceworld },
  search: { path: "recipes/search.ts", content: search },
  desk: { path: "recipes/desk.ts", content: desk },
  tau: { path: "recipes/tau-retail.ts", content: tauRetail },
  textworld: { path: "recipes/textworld.ts", content: textworld },
  terminal: { path: "recipes/terminal.ts", content: terminal },
};

/**
 * Recipes for worlds that are made up unless a variable says where their official files are; without one, such a world
 * is treated as one from outside this package.
 */
const WITH_FILES: Readonly<
  Record<string, { readonly variable: string; readonly recipe?: ConfigLayer }>
> = {
  webshop: {
    variable: "WEBSHOP_DATA",
    recipe: { path: "recipes/webshop.ts", content: officialWebshop },
  },
  search: { variable: "SEARCHQA_DATA" },
};

/** The recipe of an environment of this package. */
function ownedRecipe(
  name: string,
  hasFiles: (variable: string) => boolean,
): ConfigLayer | undefined {
  const official = WITH_FILES[name];
  return official !== undefined && hasFiles(official.variable) ? official.recipe : RECIPES[name];
}

/** The recipe for the given environment and model; a file is a complete description and replaces it. */
export async function defaultRecipe(given: Given): Promise<Base | undefined> {
  const { peek, file } = given;
  if (file !== undefined) return undefined;
  const recipe = (await isChatModel(peek("model.start"))) ? pretrainedRecipe : recipeOf;
  return recipeOfStart(given, recipe) ?? recipe(envNameOf(peek), peek);
}

/** The recipe of an environment for a pretrained chat model. */
export function pretrainedRecipe(name: string, peek: Peek): Base {
  if (name === simulator.name) return inSimulator(peek, pretrainedRecipe);
  const scratch = recipeOf(name, peek);
  // An agent's is for such models.
  if (valueAt(scratch.content, ["prompt", "style"]) === "chat") return scratch;
  const server = (peek("engine.address") ?? "embedded") !== "embedded";
  const rank = Number(peek("engine.loraRank") ?? (server ? 0 : RANK));
  const loraRank = Number.isInteger(rank) ? rank : 0;
  const content = pretrained(scratch.content as unknown as ScratchRecipe, { server, loraRank });
  return { path: PRETRAINED, content, file: "instead" };
}

/** The name under which a run records it. */
export const PRETRAINED = "recipes/pretrained.ts";

const inSimulator = (peek: Peek, recipe: (world: string, peek: Peek) => Base): Base => ({
  ...simulatorRecipe(peek, (world) => recipe(world, peek).content),
  file: "instead",
});

/** The recipe of an environment by name, including a user's own, for a model from scratch. */
export function recipeOf(name: string, peek: Peek): Base {
  if (name === simulator.name) return inSimulator(peek, recipeOf);
  const own = ownedRecipe(name, (variable) => hasFiles(peek, variable));
  return { ...(own ?? ownRecipe(name, peek)), file: "instead" };
}

/** Whether a world that is made up without its official files has them. */
function hasFiles(peek: Peek, variable: string): boolean {
  const data = peek("env.data") ?? process.env[variable] ?? "";
  return data !== "" && data !== "made-up";
}

/**
 * The recipe for a model that comes from a run: its environment, prompt and limits are the run's,
 * and it is not warm-started again. Undefined for other models, and where --env names another world.
 */
function recipeOfStart(given: Given, recipe: typeof recipeOf): Base | undefined {
  const start = given.peek("model.start");
  if (start === undefined || isWithoutRun(start)) return undefined;
  const config = settingsOfModel(start);
  const name = String(config?.env.name);
  if (config === undefined || (given.peek("env.name") ?? name) !== name) return undefined;
  const engine = engineOfRun(config.engine, given);
  const peek: Peek = (path) =>
    given.peek(path) ?? (path === "engine.loraRank" ? String(engine.loraRank) : undefined);
  const { stepLimit: _, warmStart, ...rest } = recipe(name, peek).content;
  const { env, prompt, maxTokens, stepLimit, evaluation } = config;
  return {
    path: `the run of ${start}`,
    file: "instead",
    content: {
      ...rest,
      warmStart: { ...(warmStart as object), episodes: 0 },
      ...{ env, prompt, maxTokens, evaluation, engine },
      ...(stepLimit !== undefined && { stepLimit }),
    },
  };
}

/** `pawl train --quick`: a smaller household world, and nothing else. */
export function quickRecipe({ peek, file }: Given): Base {
  const other = file !== undefined ? "--config" : peek("resume") && "--resume";
  if (other)
    throw new ConfigError(
      `--quick stands for the settings of recipes/quick.ts, and ${other} gives others: leave one of them out.`,
    );
  const env = envNameOf(peek);
  if (env !== DEFAULT_WORLD)
    throw new ConfigError(
      `--quick is a smaller ${DEFAULT_WORLD} world, and --env names ${env}: leave one of them out.`,
    );
  return { path: "recipes/quick.ts", content: quick, file: "instead" };
}

/**
 * The laptop recipe for a world from outside this package, adapted as far as it can be inspected.
 */
function ownRecipe(name: string, peek: Peek): ConfigLayer {
  const path = `the default recipe for ${name}`;
  const { stepLimit: _, ...rest } = common;
  const base = { ...rest, env: { name }, maxTokens: 32 };
  const world = openByName(name, peek);
  if (world === undefined)
    return { path, content: { ...base, warmStart: { ...common.warmStart } } };
  if (isAgentEnvironment(world)) return { path, content: agentSettings(world) };
  const teacher = (["seeker", "expert"] as const).find((one) => world[one] !== undefined);
  if (teacher === undefined && peek("model.start") === undefined)
    throw new ConfigError(
      `${name} has no teacher (expert or seeker) that a model from scratch could imitate: give a model that knows the format with --model.start FOLDER, or describe the whole run in a file with --config`,
    );
  const [first, ...others] = world.splits;
  return {
    path,
    content: {
      ...base,
      ...(first !== undefined && !world.splits.includes("train") && { split: first }),
      warmStart: teacher === undefined ? { episodes: 0 } : { ...common.warmStart, teacher },
      evaluation: {
        ...common.evaluation,
        splits: others.length > 0 ? others : world.splits,
      },
    },
  };
}

/** The world with the options that are given as texts; undefined if it cannot be opened with them. */
function openByName(name: string, peek: Peek): Environment | undefined {
  const kind = findEnvKind(name);
  const options = Object.entries(kind.options.shape).flatMap(([key, schema]) => {
    const text = peek(`env.${key}`);
    return text === undefined ? [] : [[key, coerce(text, schema)]];
  });
  try {
    return openEnvironment({ ...Object.fromEntries(options), name: kind.name }, { play: false });
  } catch (error) {
    if (error instanceof EnvError) return undefined;
    throw error;
  }
}

/**
 * Whether it has a chat template. Only small files are read, and fetched; of a model that cannot be
 * looked at, the run says what is wrong.
 */
async function isChatModel(start: string | undefined): Promise<boolean> {
  // A server's own model is not known before it is opened.
  if (start === undefined || isPreset(start) || start === "served") return false;
  try {
    if (!isFetched(start)) return hasTemplate(findSavedModel(start).tokenizer);
    if (existsSync(start)) return openGguf(start).metadata.has("tokenizer.chat_template");
    const name = parseHubName(start);
    // A file of a repository is not fetched only to look at it.
    if (name === undefined || name.file !== undefined) return true;
    return hasTemplate((await previewHubModel(name)).folder);
  } catch (error) {
    if (error instanceof UserError) return isFetched(start) && !existsSync(start);
    throw error;
  }
}

function hasTemplate(folder: string): boolean {
  if (existsSync(join(folder, "chat_template.jinja"))) return true;
  const file = join(folder, "tokenizer_config.json");
  if (!existsSync(file)) return false;
  try {
    return "chat_template" in (JSON.parse(readRegularText(file)) as object);
  } catch {
    return false;
  }
}

/**
 * The recipe of the world, on its simulated tasks; prompts and limits are those that the agent's run
 * had. Evaluation is in the world, and on the first split in the model too.
 */
function simulatorRecipe(peek: Peek, recipeOfWorld: (name: string) => SettingsTree): ConfigLayer {
  const path = "the recipe of the simulated world";
  const env = { name: simulator.name };
  const model = peek("env.model");
  // The schema says what is missing.
  if (model === undefined) return { path, content: { env } };
  const given = peek("env.world");
  const world = worldOf({
    model,
    world: given && (coerce(given, simulator.options.shape.world) as string),
  });
  const start = peek("model.start");
  if (start === undefined)
    throw new ConfigError(
      "--env simulator: an agent that acts in a world model must know the format of its world: give one with --model.start RUN, such as a warm start in the world itself (pawl train --updates 0)",
    );
  const recipe = recipeOfWorld(world.name);
  const { prompt, maxTokens, stepLimit, evaluation } = actingSettings(start);
  const splits = evaluationSplits(world, evaluation ?? recipe.evaluation);
  return {
    path,
    content: {
      ...recipe,
      ...(prompt !== undefined && { prompt }),
      ...(maxTokens !== undefined && { maxTokens }),
      ...(stepLimit !== undefined && { stepLimit }),
      env,
      split: simulatedSplit(typeof recipe.split === "string" ? recipe.split : "train"),
      // Teachers look at the true state of a world, which a model does not have.
      warmStart: { episodes: 0 },
      corrections: { episodes: 0 },
      evaluation: {
        ...(recipe.evaluation as object),
        ...evaluation,
        splits: [...splits, simulatedSplit(splits[0]!)],
      },
    },
  };
}

function actingSettings(start: string): Partial<NonNullable<ReturnType<typeof settingsOfModel>>> {
  return isWithoutRun(start) ? {} : (settingsOfModel(start) ?? {});
}

/** The splits of the world that its recipe or the agent's run evaluates on. */
function evaluationSplits(world: ReturnType<typeof worldOf>, evaluation: unknown) {
  const { splits } = openEnvironment(world);
  const named = (evaluation as { readonly splits?: readonly string[] } | undefined)?.splits ?? [
    "valid_seen",
    "valid_unseen",
  ];
  const known = named.filter((split) => splits.includes(split));
  return known.length > 0 ? known : splits.slice(-1);
}
