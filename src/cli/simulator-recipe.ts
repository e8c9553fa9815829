/** Default settings of training inside a world model. */
import { ConfigError } from "../config/config-error.js";
import type { ConfigLayer } from "../config/resolve.js";
import { coerce } from "../config/settings.js";
import type { SettingsTree } from "../config/settings-tree.js";
import { openEnvironment } from "../envs/open.js";
import { settingsOfModel } from "../train/saved-model.js";
import { simulatedSplit, simulator, worldOf } from "../worldmodel/simulator-kind.js";
import type { Peek } from "./command.js";
import { isWithoutRun } from "./model-name.js";

/**
 * The recipe of the world, on its simulated tasks; prompts and limits are those that the agent's run
 * had. Evaluation is in the world, and on the first split in the model too.
 */
export function simulatorRecipe(
  peek: Peek,
  recipeOfWorld: (name: string) => SettingsTree,
): ConfigLayer {
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
