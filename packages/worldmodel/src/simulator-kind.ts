/**
 * `--env simulator`: RL inside a world model, beside the world that it models.
 *
 * Every split of the world exists twice. Tasks of `simulated_train` are played in the model; those of
 * `train`, `valid_seen`, … in the world, so that a run that learns in the model says how it does in
 * the world. Both look the same to a policy: neither lists actions, since the model has no list.
 */

import { ConfigError } from "@pawl/core/config/config-error.js";
import {
  type Env,
  EnvError,
  type Environment,
  type EnvKind,
  type RemoteEnv,
  type Task,
} from "@pawl/core/envs/env.js";
import { type EnvConfig, openEnvironment } from "@pawl/core/envs/open.js";
import { taskLists } from "@pawl/core/envs/task-lists.js";
import { engineChoice } from "@pawl/training/engines.js";
import { settingsOfModel } from "@pawl/training/saved-model.js";
import { z } from "zod";
import { anchorOptions, maxTokensOption } from "./config.js";
import type { WorldModel } from "./model.js";
import { findWorldModel, type LoadedWorldModel, loadWorldModel } from "./saved.js";
import { createSimulator } from "./simulator.js";

const NAME = "simulator";
/** Begins the splits that are played in the model, and the ids of their tasks. */
const SIMULATED = "simulated";

/** A split's name in the model. */
export const simulatedSplit = (split: string): string => `${SIMULATED}_${split}`;

const options = z.strictObject({
  model: z
    .string()
    .min(1)
    .describe("world model: a run of pawl wm train or pawl train, or a model folder"),
  world: z
    .union([z.string(), z.record(z.string(), z.unknown())])
    .optional()
    .describe(
      "the world that it models: a name, or JSON with options (default: that of a run of pawl train)",
    ),
  anchor: anchorOptions,
  maxTokens: maxTokensOption,
  engine: engineChoice,
});

type SimulatorOptions = z.output<typeof options>;

/** A world model in place of a world, by name. */
export const simulator: EnvKind<typeof options> = {
  name: NAME,
  summary: "a trained world model in place of its world (simulated_… splits), beside the world",
  options,
  open: (given) => openSimulator(given, (folder) => loadWorldModel(folder, given)),
};

/** The world that a simulator's options name, or that its model's run was in. */
export function worldOf({ model, world }: Pick<SimulatorOptions, "model" | "world">): EnvConfig {
  const named = typeof world === "string" ? { name: world } : world;
  const config = named ?? recordedWorld(model);
  const { name } = config ?? {};
  if (typeof name !== "string")
    throw new ConfigError(
      `env.world: ${model} does not say which world it models: give its name, such as --env.world household, or JSON with the options that pawl wm data had: --env.world '{"name": "household", "rooms": 1}'`,
    );
  if (name === NAME) throw new ConfigError("env.world: a world model cannot model a simulator");
  return { ...config, name };
}

/** The environment of an agent's run; runs of `pawl wm train` learn from data sets and have none. */
function recordedWorld(model: string): Readonly<Record<string, unknown>> | undefined {
  const env = settingsOfModel(model)?.env;
  // An agent that learned inside a model is a model of the same world.
  return env?.name === NAME ? worldOf(env as unknown as SimulatorOptions) : env;
}

/** The environment; `load` starts the model when it is first asked. */
export function openSimulator(
  given: Pick<SimulatorOptions, "model" | "world" | "anchor">,
  load: (folder: string) => Promise<Pick<LoadedWorldModel, "model" | "dispose">>,
): Environment {
  // A model that is not there is refused before anything runs.
  findWorldModel(given.model);
  const world = openEnvironment(worldOf(given));
  if ("agent" in world)
    throw new ConfigError(
      `env.world: ${world.name} is an agent's program; there is no world whose answers a model could give`,
    );
  let loaded: Promise<Pick<LoadedWorldModel, "model" | "dispose">> | undefined;
  const model: WorldModel = {
    name: given.model,
    async predict(queries, signal) {
      loaded ??= load(given.model);
      return (await loaded).model.predict(queries, signal);
    },
  };
  const { every, actions } = given.anchor;
  const { environment: inModel } = createSimulator({
    environment: world,
    model,
    breakOnNoAnswer: true,
    ...((every > 0 || actions.length > 0) && { anchor: given.anchor }),
  });
  const { limits: _, ...facts } = inModel;
  const asSimulated = (task: Task): Task => ({
    ...task,
    id: `${SIMULATED}/${task.id}`,
    split: simulatedSplit(task.split),
  });
  const lists = world.splits.flatMap((split) => [
    [split, () => world.tasks(split)] as const,
    [simulatedSplit(split), () => world.tasks(split).map(asSimulated)] as const,
  ]);
  const name = `${NAME}-${world.name}`;
  return {
    ...facts,
    name,
    ...taskLists(name, Object.fromEntries(lists)),
    create: () => eitherWorld(world, inModel),
    async close() {
      const open = loaded;
      loaded = undefined;
      await (await open)?.dispose();
      await world.close?.();
    },
  };
}

/** An episode in the world or in the model, as its task says. */
function eitherWorld(world: Environment, inModel: Environment): RemoteEnv {
  let env: Env | RemoteEnv | undefined;
  const started = (): Env | RemoteEnv => {
    if (env === undefined) throw new EnvError(`${NAME}: call reset(task) first.`);
    return env;
  };
  const close = async (): Promise<void> => {
    if (env !== undefined && "close" in env) await env.close();
    env = undefined;
  };
  const either: RemoteEnv = {
    get goal() {
      return started().goal;
    },
    get taskType() {
      return started().taskType;
    },
    irreversible: (action) => started().irreversible?.(action) ?? false,
    initialContext: () => started().initialContext?.(),
    maxReturn: () => started().maxReturn?.(),
    async reset(task, seed, signal) {
      await close();
      const simulated = task.split.startsWith(`${SIMULATED}_`);
      const own = simulated ? world.task(task.id.slice(SIMULATED.length + 1)) : task;
      env = (simulated ? inModel : world).create();
      const observation = await env.reset(own, seed, signal);
      const { tools } = env;
      if (tools !== undefined) either.tools = () => tools.call(env);
      return observation;
    },
    step: async (action, signal) => started().step(action, signal),
    close,
  };
  return either;
}
