/**
 * Selects the engine of a configuration: embedded or on a server. The rest of a run does not depend
 * on it.
 */

import { ConfigError } from "@pawl/core/config/config-error.js";
import type { Capabilities, Engine } from "@pawl/core/engine/engine.js";
import { requireConsent } from "@pawl/core/trust/consent.js";
import { address } from "@pawl/core/trust/reach.js";
import { KEY_VARIABLES } from "@pawl/engine-remote/remote/remote-engine.js";
import { withSampler } from "@pawl/engine-remote/sampler/sampler-engine.js";
import { z } from "zod";
import { embeddedKind } from "./embedded-kind.js";
import {
  type EngineKind,
  type EngineModel,
  type EngineOptions,
  engineSettings,
  type OpenEngineOptions,
} from "./engine-kind.js";
import { serverKind } from "./server-kind.js";

export type { EngineModel, EngineOptions, OpenEngineOptions } from "./engine-kind.js";

/**
 * The kinds of engines. To add one, write a file beside these and add a line here
 * (CONTRIBUTING.md).
 */
const engineKinds: readonly EngineKind[] = [
  embeddedKind, // the default
  serverKind,
];

/** The engine to compute with. */
export const engineOptions = z
  .strictObject({
    address: address(z.union(engineKinds.map((kind) => kind.address)), ...KEY_VARIABLES)
      .default("embedded")
      .describe(`where to compute: ${engineKinds.map(({ help }) => help).join(", or ")}`),
    ...engineSettings,
  })
  .prefault({});

const kindOf = ({ address }: Pick<EngineOptions, "address">): EngineKind => {
  const kind = engineKinds.find((one) => one.address.safeParse(address).success);
  if (kind === undefined)
    throw new ConfigError(
      `engine: there is no engine "${address}"; expected ${engineKinds.map(({ help }) => help).join(", or ")}`,
    );
  return kind;
};

/** Whether the settings name an engine server. */
export function isRemote(options: Pick<EngineOptions, "address">): boolean {
  return kindOf(options).isRemote;
}

/** Why no model can be opened there only to be measured; undefined if one can. */
export async function notMeasured(options: EngineOptions): Promise<string | undefined> {
  requireConsent(engineOptions, options, "engine");
  if (options.sampler !== undefined) return "the sampler gets the model from the run";
  return kindOf(options).notMeasured?.(options);
}

/** Starts the engine with this model, and the sampler that samples for it, if one is named. */
export async function openEngine(
  options: EngineOptions,
  model: EngineModel,
  more: OpenEngineOptions = {},
): Promise<Engine> {
  requireConsent(engineOptions, options, "engine");
  refuseSamplerOnly(options, more);
  refuseLoraOnly(options);
  const engine = await kindOf(options).open(options, model, more);
  if (options.sampler === undefined) return engine;
  try {
    return await withSampler(engine, {
      url: options.sampler,
      ...(options.samplerModel !== undefined && { model: options.samplerModel }),
      ...(options.samplerFolder !== undefined && { folder: options.samplerFolder }),
      engine: { isRemote: isRemote(options), copy: options.copy, loraRank: options.loraRank },
    });
  } catch (error) {
    await engine.dispose();
    throw error;
  }
}

function refuseLoraOnly({ loraRank, loraAlpha, loraTargets }: EngineOptions): void {
  const given = Object.entries({ loraAlpha, loraTargets }).flatMap(([name, value]) =>
    value === undefined ? [] : [`engine.${name}`],
  );
  if (loraRank === 0 && given.length > 0)
    throw new ConfigError(
      `${given.join(", ")}: there are no adapters here; set engine.loraRank, or leave this out`,
    );
}

function refuseSamplerOnly(options: EngineOptions, { valueHead }: OpenEngineOptions): void {
  const { sampler, samplerModel, samplerFolder } = options;
  if (sampler === undefined && (samplerModel ?? samplerFolder) !== undefined)
    throw new ConfigError(
      "engine.samplerModel, engine.samplerFolder: there is no sampler; name one with --engine.sampler http://…, or leave them out",
    );
  if (sampler === undefined) return;
  if (valueHead === true)
    throw new ConfigError(
      "engine.sampler: samplers cannot read a checkpoint with a critic in it; set critic.weights to own, or choose another advantage than ppo",
    );
}

/** What a configuration needs from an engine. */
export interface EngineNeeds {
  readonly values: boolean;
  readonly entropies: boolean;
  readonly discardGradients: boolean;
  readonly temperatures: boolean;
  readonly actor: boolean;
  readonly scoresBesideSampling: boolean;
}

/** Rejects, before a run starts, what the engine cannot do. */
export function refuseMissing(needs: Partial<EngineNeeds>, capabilities: Capabilities): void {
  const remedies: Readonly<Record<keyof EngineNeeds, string>> = {
    values: "it has no value head: set critic.weights to own, or choose another advantage than ppo",
    entropies: "it computes no entropies: set paw.entropy to sampled and objective.entropy to 0",
    discardGradients: "it cannot measure gradients: set gradients.every to 0",
    actor:
      "it keeps no weights to act with while it learns: let a second server sample (engine.sampler), or set overlap to 0",
    scoresBesideSampling: "it cannot score while it samples: leave scoreWhileActing out",
    temperatures: "it computes log-probabilities at temperature 1 only: set temperature to 1",
  };
  const missing = (Object.keys(remedies) as (keyof EngineNeeds)[]).filter(
    (name) => needs[name] === true && !capabilities[name],
  );
  if (missing.length > 0)
    throw new ConfigError(
      `${capabilities.name} cannot do what the configuration asks: ${missing.map((name) => remedies[name]).join("; ")}`,
    );
}

// Which engine reads a saved model: the named one, or else that of the run that trained it.

const settings = engineOptions.unwrap();

/**
 * The engine of commands that only read models; settings not given come from each model's own run.
 */
export const engineChoice = settings
  .pick({ threads: true, model: true })
  .extend({
    address: settings.shape.address
      .unwrap()
      .optional()
      .describe(
        "embedded, or the URL of an engine server (default: the engine of each model's run)",
      ),
  })
  .prefault({});

/** The engine settings that were given. */
export type EngineChoice = z.output<typeof engineChoice>;

/**
 * The engine to read a model with, given the settings of the run that trained it, if any.
 *
 * Copies and samplers are for training only. A server's model names mean nothing to another engine.
 * What its adapters are belongs to the weights and is kept, except between the embedded engine and a
 * server, which adapt projections differently: there the adapters are read merged.
 */
export function engineFor(
  recorded: EngineOptions | undefined,
  chosen: EngineChoice = {},
): EngineOptions {
  const { address = "embedded", threads, model } = recorded ?? {};
  const { loraRank, loraAlpha, loraTargets } = recorded ?? {};
  const chosenAddress = chosen.address ?? address;
  const same = chosenAddress === address;
  return engineOptions.parse({
    ...(same && threads !== undefined && { threads }),
    ...(same && model !== undefined && { model }),
    ...(isRemote({ address: chosenAddress }) === isRemote({ address }) && {
      loraRank,
      loraAlpha,
      loraTargets,
    }),
    ...chosen,
    address: chosenAddress,
  });
}
