/** The engine that a configuration means: in this process, or on a server; the rest of a run is the same. */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import type { ModelSource } from "../engine/embedded/core.js";
import { createEmbeddedEngine } from "../engine/embedded/embedded-engine.js";
import type { Capabilities, Engine } from "../engine/engine.js";
import { POINTER_FILE } from "../engine/remote/checkpoints.js";
import { connectRemoteEngine } from "../engine/remote/remote-engine.js";
import { withSampler } from "../engine/sampler/sampler-engine.js";
import { KEY_VARIABLE } from "../engine/sampler/wire.js";

/** The engine to compute with. */
export const engineOptions = z
  .strictObject({
    name: z
      .union([z.literal("embedded"), z.url({ protocol: /^https?$/ })])
      .default("embedded")
      .describe("what computes: embedded (this process), or an engine server's http://…"),
    threads: z.int().min(1).optional().describe("threads of this process; default: one per core"),
    model: z
      .string()
      .optional()
      .describe("name of the model on an engine server; needed where it has several"),
    loraRank: z
      .int()
      .min(0)
      .default(0)
      .describe("train low-rank adapters of this rank on an engine server; 0: all weights"),
    copy: z
      .boolean()
      .default(false)
      .describe("copy an engine server's checkpoints into the run folder, weights and all"),
    sampler: z
      .url({ protocol: /^https?$/ })
      .refine((url) => !URL.canParse(url) || new URL(url).password === "", {
        error: `must not carry a password; put the key into ${KEY_VARIABLE}`,
      })
      .optional()
      .describe("http://… of a vLLM or SGLang server that samples in the engine's place"),
    samplerModel: z
      .string()
      .optional()
      .describe("name of the sampler's model; needed where it has several"),
    samplerFolder: z
      .string()
      .min(1)
      .optional()
      .describe("folder that the sampler sees too, for new weights; default: for temporary files"),
  })
  .prefault({});

/** The settings of an engine. */
export type EngineOptions = z.output<typeof engineOptions>;

/** What a model starts from: as for the embedded engine, or the model that a server has. */
export type EngineModel = ModelSource | { readonly served: true };

/** What else an engine is told. */
export interface OpenEngineOptions {
  readonly seed?: number;
  readonly valueHead?: boolean;
  readonly onNotice?: (message: string) => void;
}

/** Whether the settings name an engine server. */
export function isRemote({ name }: Pick<EngineOptions, "name">): boolean {
  return name !== "embedded";
}

/** Starts the engine with this model, and lets the sampler sample for it where one is named. */
export async function openEngine(
  options: EngineOptions,
  model: EngineModel,
  more: OpenEngineOptions = {},
): Promise<Engine> {
  refuseSamplerOnly(options, more);
  const engine = await openOwn(options, model, more);
  if (options.sampler === undefined) return engine;
  try {
    return await withSampler(engine, {
      url: options.sampler,
      ...(options.samplerModel !== undefined && { model: options.samplerModel }),
      ...(options.samplerFolder !== undefined && { folder: options.samplerFolder }),
    });
  } catch (error) {
    await engine.dispose();
    throw error;
  }
}

async function openOwn(
  options: EngineOptions,
  model: EngineModel,
  { seed = 0, valueHead = false, onNotice }: OpenEngineOptions,
): Promise<Engine> {
  const { name, threads, loraRank, copy } = options;
  if (!isRemote(options)) {
    refuseRemoteOnly(options);
    if ("served" in model)
      throw new ConfigError(
        "model.start served: the embedded engine has no model of its own; name a preset or a folder, or an engine server with --engine http://…",
      );
    if ("folder" in model) refusePointer(model.folder);
    return createEmbeddedEngine({ model, seed, valueHead, ...(threads && { threads }) });
  }
  const remote = {
    url: name,
    loraRank,
    copy,
    valueHead,
    seed,
    ...(options.model !== undefined && { model: options.model }),
    ...(onNotice !== undefined && { onNotice }),
  };
  if ("served" in model) return connectRemoteEngine(remote);
  if ("folder" in model) return connectRemoteEngine({ ...remote, folder: model.folder });
  // The same first weights as here: made here, and sent.
  const folder = await mkdtemp(join(tmpdir(), "pawl-first-weights-"));
  try {
    const first = await createEmbeddedEngine({ model, seed, valueHead, threads: 1 });
    await first.save(folder, { optimizer: false });
    await first.dispose();
    return await connectRemoteEngine({ ...remote, folder });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function refuseSamplerOnly(options: EngineOptions, { valueHead }: OpenEngineOptions): void {
  const { sampler, samplerModel, samplerFolder } = options;
  if (sampler === undefined && (samplerModel ?? samplerFolder) !== undefined)
    throw new ConfigError(
      "engine.samplerModel, engine.samplerFolder: there is no sampler; name one with --engine.sampler http://…, or leave them out",
    );
  if (sampler === undefined) return;
  if (isRemote(options) && !options.copy)
    throw new ConfigError(
      "engine.sampler: the weights stay on the engine server, where the sampler cannot read them; set engine.copy",
    );
  if (valueHead === true)
    throw new ConfigError(
      "engine.sampler: samplers read no checkpoint with a critic in it; set critic.weights to own, or choose another advantage than ppo",
    );
}

function refuseRemoteOnly({ model, loraRank, copy }: EngineOptions): void {
  const given = [
    ...(model === undefined ? [] : ["engine.model"]),
    ...(loraRank === 0 ? [] : ["engine.loraRank"]),
    ...(copy ? ["engine.copy"] : []),
  ];
  if (given.length > 0)
    throw new ConfigError(
      `${given.join(", ")}: only an engine server has that; name one with --engine http://…, or leave it out`,
    );
}

function refusePointer(folder: string): void {
  if (existsSync(join(folder, POINTER_FILE)) && !existsSync(join(folder, "model.safetensors")))
    throw new ConfigError(
      `${folder}: its weights are on the engine server they were trained on; name that server with --engine http://…`,
    );
}

/** What a configuration asks of an engine. */
export interface EngineNeeds {
  readonly values: boolean;
  readonly entropies: boolean;
  readonly discardGradients: boolean;
  readonly temperatures: boolean;
}

/** Refuses, before a run starts, what the engine cannot do. */
export function refuseMissing(needs: Partial<EngineNeeds>, capabilities: Capabilities): void {
  const remedies: Readonly<Record<keyof EngineNeeds, string>> = {
    values: "it has no value head: set critic.weights to own, or choose another advantage than ppo",
    entropies: "it computes no entropies: set paw.entropy to sampled and objective.entropy to 0",
    discardGradients:
      "it cannot measure gradients: set gradients.every to 0, and leave paw.gradientLength out",
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
