/** Default settings: a recipe for each environment. */
import { common } from "../../recipes/laptop.js";
import { quick } from "../../recipes/quick.js";
import { isAgentEnvironment } from "../agents/agent-environment.js";
import { ConfigError } from "../config/config-error.js";
import type { ConfigLayer } from "../config/resolve.js";
import { coerce } from "../config/settings.js";
import { EnvError, type Environment } from "../envs/env.js";
import { openEnvironment } from "../envs/open.js";
import { findEnvKind } from "../envs/registry.js";
import { settingsOfModel } from "../train/saved-model.js";
import { agentSettings } from "../train/train-agent.js";
import { simulator } from "../worldmodel/simulator-kind.js";
import { engineOfRun } from "./checkpoint-policy.js";
import type { Base, Given, Peek } from "./command.js";
import { envNameOf } from "./env-options.js";
import { isWithoutRun } from "./model-name.js";
import { ownedRecipe } from "./owned-recipe.js";
import { simulatorRecipe } from "./simulator-recipe.js";
import { DEFAULT_WORLD } from "./worlds.js";

/** The recipe of the given environment; a file is a complete description and replaces it. */
export function defaultRecipe({ peek, file }: Given): Base | undefined {
  return file === undefined ? recipeOf(envNameOf(peek), peek) : undefined;
}

/** The recipe of an environment by name, including a user's own. */
export function recipeOf(name: string, peek: Peek): Base {
  if (name === simulator.name)
    return { ...simulatorRecipe(peek, (world) => recipeOf(world, peek).content), file: "instead" };
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
export function recipeOfStart(given: Given): Base | undefined {
  const start = given.peek("model.start");
  if (given.file !== undefined || start === undefined || isWithoutRun(start)) return undefined;
  const config = settingsOfModel(start);
  const name = String(config?.env.name);
  if (config === undefined || (given.peek("env.name") ?? name) !== name) return undefined;
  const { stepLimit: _, warmStart, ...recipe } = recipeOf(name, given.peek).content;
  const { env, prompt, maxTokens, stepLimit, evaluation } = config;
  return {
    path: `the run of ${start}`,
    file: "instead",
    content: {
      ...recipe,
      warmStart: { ...(warmStart as object), episodes: 0 },
      ...{ env, prompt, maxTokens, evaluation },
      engine: engineOfRun(config.engine, given),
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
