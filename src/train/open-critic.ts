/** The critic's settings, and the engine that it is opened on. */
import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { KEY_VARIABLES } from "../engine/remote/remote-engine.js";
import { address } from "../reach.js";
import { type Critic, type CriticSettings, createCritic } from "./critic.js";
import {
  type EngineModel,
  type EngineOptions,
  isRemote,
  type OpenEngineOptions,
  openEngine,
} from "./engines.js";

/** Settings of PPO's critic. */
export const criticOptions = z
  .strictObject({
    weights: z
      .enum(["own", "shared"])
      .default("own")
      .describe("a critic with its own weights, or a value head on the policy"),
    learningRate: z
      .number()
      .gt(0)
      .optional()
      .describe("learning rate of the critic (default: ten times optimizer.learningRate)"),
    engine: address(z.url({ protocol: /^https?$/ }), ...KEY_VARIABLES)
      .optional()
      .describe("URL of an engine server for the critic (default: the policy's engine)"),
  })
  .prefault({});

/** A run's critic settings, with those of the engines. */
export interface CriticConfig extends CriticSettings {
  readonly critic?: z.output<typeof criticOptions>;
  readonly engine: EngineOptions;
}

/** Rejects a critic that cannot get its weights. */
export function checkCritic({ critic, engine }: Pick<CriticConfig, "critic" | "engine">): void {
  if (critic?.engine !== undefined && isRemote(engine) && !engine.copy)
    throw new ConfigError(
      "critic.engine: the weights it starts from stay on the policy's engine server, where another server cannot read them; set engine.copy",
    );
}

/** Starts a critic with the policy's initial model. */
export async function openCritic(
  config: CriticConfig,
  model: EngineModel,
  maxReturn: number,
  more: OpenEngineOptions = {},
): Promise<Critic> {
  const { sampler: _, samplerModel: __, samplerFolder: ___, ...here } = config.engine;
  const { model: ____, ...elsewhere } = here;
  const settings =
    config.critic?.engine === undefined ? here : { ...elsewhere, address: config.critic.engine };
  const engine = await openEngine(settings, model, { ...more, valueHead: true });
  return createCritic(engine, config, maxReturn);
}
