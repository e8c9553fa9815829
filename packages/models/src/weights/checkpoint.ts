/** A checkpoint folder in Hugging Face's layout: config.json and one or more safetensors files. */

import { existsSync } from "node:fs";
import { link, mkdir, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { EngineError } from "@pawl/core/engine/engine.js";
import { writeFileAtomically, writeFully } from "@pawl/core/files/atomic-file.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { z } from "zod";
import { ADAPTER_FILES, type Adapter, openAdapter } from "./adapter.js";
import { formatModelConfig, parseModelConfig } from "./config-json.js";
import type { ModelConfig } from "./model-config.js";
import {
  openSafetensors,
  readTensor,
  type SafetensorsFile,
  type TensorData,
  type TensorSource,
  type WeightsDtype,
  writeSafetensors,
} from "./safetensors.js";
import { checkTensors, type TensorSpec, tensorSpecs } from "./tensor-names.js";

// Weights in several files: an index says which tensor is in which.

export const WEIGHTS_FILE = "model.safetensors";
export const INDEX_FILE = "model.safetensors.index.json";

const indexSchema = z.looseObject({
  // Plain names only, so that an index cannot point outside its folder.
  weight_map: z.record(z.string(), z.string().regex(/^[\w.-]+\.safetensors$/)),
});

/** Each tensor with the name of its file, from the text of an index; `where` names it in errors. */
export function parseIndex(text: string, where: string): ReadonlyMap<string, string> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new EngineError(`${where}: cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const parsed = indexSchema.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw new EngineError(
      `${where}: ${issue.path.join(".")}: ${issue.message}; expected the name of a .safetensors file in the same folder for each tensor`,
    );
  }
  return new Map(Object.entries(parsed.data.weight_map));
}

/** The files that an index names. */
export function shardsOf(text: string, where: string): readonly string[] {
  return [...new Set(parseIndex(text, where).values())];
}

/** The files that hold a folder's weights, the index included; empty if it has none. */
export function weightFiles(folder: string): readonly string[] {
  if (existsSync(join(folder, WEIGHTS_FILE))) return [WEIGHTS_FILE];
  const index = join(folder, INDEX_FILE);
  return existsSync(index) ? [...shardsOf(readRegularText(index), index), INDEX_FILE] : [];
}

const CONFIG_FILE = "config.json";
/** The optimiser's state, beside the weights. */
export const OPTIMIZER_FILE = "optimizer.safetensors";

/** A checkpoint whose configuration and tensor headers have been read and agree. */
export interface Checkpoint {
  readonly folder: string;
  readonly config: ModelConfig;
  /** Its tensors, in the order the model uses them. */
  readonly tensors: readonly TensorSpec[];
  /** The adapter next to the weights. */
  readonly adapter: Adapter | undefined;
  /**
   * Reads one tensor as 32-bit floats, with any adapter merged unless `plain`; NaN or infinity is an
   * error.
   */
  read(name: string, how?: { readonly plain?: boolean }): Promise<Float32Array>;
}

/** Opens a checkpoint folder; throws if its weights do not fit its model. */
export async function openCheckpoint(folder: string): Promise<Checkpoint> {
  const configFile = join(folder, CONFIG_FILE);
  const config = parseModelConfig(await readJson(configFile), configFile);
  const sources = await findTensors(folder);
  const headers = [...sources].map(([name, source]) => [name, source.tensors.get(name)!] as const);
  checkTensors(config, new Map(headers), folder);
  const tensors = tensorSpecs(config).filter((spec) => sources.has(spec.name));
  const adapter = await openAdapter(folder, tensors);
  return {
    folder,
    config,
    tensors,
    adapter,
    read: async (name, { plain = false } = {}) => {
      const source = sources.get(name);
      if (source === undefined)
        throw new EngineError(`${folder}: tensor ${name} is missing from the checkpoint`);
      const data = await readTensor(source, name);
      if (!plain) await adapter?.addTo(name, data);
      const bad = firstNonFinite(data);
      if (bad !== -1)
        throw new EngineError(
          `${source.file}: tensor ${name} holds ${data[bad]} at index ${bad}; the checkpoint is damaged`,
        );
      return data;
    },
  };
}

export interface WriteCheckpointOptions {
  readonly dtype?: WeightsDtype;
  /** A folder with these very weights, whose file is linked if it is still there. */
  readonly linkTo?: string | undefined;
}

/** Writes a checkpoint folder: config.json and model.safetensors. */
export async function writeCheckpoint(
  folder: string,
  config: ModelConfig,
  tensors: ReadonlyMap<string, TensorData | TensorSource>,
  { dtype = "F32", linkTo }: WriteCheckpointOptions = {},
): Promise<void> {
  const headers = [...tensors].map(([name, { shape }]) => [name, { dtype, shape }] as const);
  checkTensors(config, new Map(headers), folder);
  await mkdir(folder, { recursive: true });
  // An old adapter in this folder would be added to the new weights.
  for (const file of ADAPTER_FILES) await rm(join(folder, file), { force: true });
  const file = join(folder, WEIGHTS_FILE);
  if (linkTo === undefined || !(await linked(join(linkTo, WEIGHTS_FILE), file)))
    await writeSafetensors(file, tensors, { dtype });
  const json = `${JSON.stringify({ ...formatModelConfig(config), torch_dtype: TORCH_DTYPES[dtype] }, null, 2)}\n`;
  await writeFileAtomically(join(folder, CONFIG_FILE), (handle) =>
    writeFully(handle, Buffer.from(json)),
  );
}

/** Gives a file a second name, if the disk can do that. */
async function linked(from: string, to: string): Promise<boolean> {
  if (resolve(from) === resolve(to)) return exists(to);
  await rm(to, { force: true });
  return link(from, to).then(
    () => true,
    () => false,
  );
}

const TORCH_DTYPES = { F32: "float32", F16: "float16", BF16: "bfloat16" } as const;

/** Each tensor's name with the file that holds it. */
async function findTensors(folder: string): Promise<ReadonlyMap<string, SafetensorsFile>> {
  const single = join(folder, WEIGHTS_FILE);
  if (await exists(single)) {
    const source = await openSafetensors(single);
    return new Map([...source.tensors.keys()].map((name) => [name, source]));
  }
  const index = join(folder, INDEX_FILE);
  if (await exists(index)) return findShardedTensors(folder, index);
  throw new EngineError(
    `${folder}: no weights: expected ${WEIGHTS_FILE} or ${INDEX_FILE} (a checkpoint in PyTorch's .bin format must be converted to safetensors first)`,
  );
}

async function findShardedTensors(
  folder: string,
  index: string,
): Promise<ReadonlyMap<string, SafetensorsFile>> {
  const entries = [...parseIndex(await readText(index), index)];
  const shards = new Map<string, SafetensorsFile>();
  for (const shard of new Set(entries.map(([, file]) => file)))
    shards.set(shard, await openSafetensors(join(folder, shard)));
  return new Map(
    entries.map(([name, shard]) => {
      const source = shards.get(shard)!;
      if (!source.tensors.has(name))
        throw new EngineError(
          `${index}: tensor ${name} should be in ${shard}, but is not: fetch or copy all parts again, from one model`,
        );
      return [name, source];
    }),
  );
}

function firstNonFinite(data: Float32Array): number {
  for (let i = 0; i < data.length; i++) if (!Number.isFinite(data[i])) return i;
  return -1;
}

async function readText(file: string): Promise<string> {
  try {
    return readRegularText(file);
  } catch (error) {
    throw new EngineError(`${file}: cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

async function readJson(file: string): Promise<unknown> {
  const text = await readText(file);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new EngineError(`${file}: cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return false;
      throw new EngineError(`${file}: cannot be read: ${error.message}`, { cause: error });
    },
  );
}
