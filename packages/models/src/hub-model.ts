/**
 * Models of the Hugging Face hub. Only data is fetched: configuration, tokenizer, and weights as
 * safetensors or GGUF; never pickle, never code.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { EngineError } from "@pawl/core/engine/engine.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { ggufFolder } from "./gguf/gguf-convert.js";
import { isGgufName } from "./gguf/gguf-file.js";
import type { HubName } from "./hub/hub-name.js";
import { fetchSnapshot, type ListedFile } from "./hub/hub-snapshot.js";
import type { FetchedModel, FetchOptions, ModelOrigin } from "./model-origin.js";
import { INDEX_FILE, shardsOf, WEIGHTS_FILE } from "./weights/checkpoint.js";

const NEEDED = ["config.json", "tokenizer.json"];
const WANTED = [
  ...NEEDED,
  "tokenizer_config.json",
  "special_tokens_map.json",
  "chat_template.jinja",
  "generation_config.json",
];

/** Fetches a model of the hub, or one GGUF file of it. */
export async function hubModel(name: HubName, options: FetchOptions = {}): Promise<FetchedModel> {
  const { repo, revision, file } = name;
  if (file !== undefined) {
    const { path, origin } = await hubGguf({ ...name, file }, options);
    const converted = await ggufFolder(path, options);
    return { ...converted, origin: { ...converted.origin, ...origin } };
  }
  const { folder, commit } = await fetchSnapshot({
    ...options,
    repo,
    revision,
    choose: (listed, there) => modelFiles(repo, listed, there),
    isComplete: isWhole,
  });
  return { folder, origin: { model: repo, revision: commit } };
}

/** Fetches one GGUF file of a repository. */
export async function hubGguf(
  { repo, revision, file }: HubName & { readonly file: string },
  options: FetchOptions = {},
): Promise<{ readonly path: string; readonly origin: ModelOrigin }> {
  if (!isGgufName(file))
    throw new EngineError(
      `${repo}/${file}: only a .gguf file can be named inside a repository; name the repository itself, ${repo}`,
    );
  const { folder, commit } = await fetchSnapshot({
    ...options,
    repo,
    revision,
    choose: (listed) => oneFile(repo, listed, file),
    isComplete: async (there) => existsSync(join(there, file)),
  });
  return { path: join(folder, file), origin: { model: `${repo}/${file}`, revision: commit } };
}

/** A model of the hub without its weights. */
export interface HubPreview extends FetchedModel {
  /** Bytes of its weights; undefined if they are here, and the hub was not asked. */
  readonly bytes: number | undefined;
}

/** Fetches what describes a model, and the size of its weights from the hub's list of files. */
export async function previewHubModel(
  { repo, revision }: HubName,
  options: FetchOptions = {},
): Promise<HubPreview> {
  let bytes: number | undefined;
  const snapshot = await fetchSnapshot({
    ...options,
    repo,
    revision,
    async choose(listed, folder) {
      const chosen = await modelFiles(repo, listed, folder);
      const weights = listed.filter(
        ({ path }) => chosen.includes(path) && path.endsWith(".safetensors"),
      );
      bytes = weights.reduce((sum, { size }) => sum + size, 0);
      return chosen.filter((path) => !path.endsWith(".safetensors"));
    },
    isComplete: isWhole,
  });
  return { folder: snapshot.folder, origin: { model: repo, revision: snapshot.commit }, bytes };
}

async function oneFile(repo: string, listed: readonly ListedFile[], file: string) {
  if (!listed.some(({ path }) => path === file))
    throw new EngineError(`${repo} has no ${file}; it has ${ggufFiles(listed) || "no .gguf file"}`);
  return [file];
}

const ggufFiles = (listed: readonly ListedFile[]): string =>
  listed
    .map(({ path }) => path)
    .filter(isGgufName)
    .join(", ");

async function modelFiles(
  repo: string,
  listed: readonly ListedFile[],
  folder: string,
): Promise<readonly string[]> {
  const there = new Set(listed.map(({ path }) => path));
  const weights = [WEIGHTS_FILE, INDEX_FILE].find((name) => there.has(name));
  const missing = NEEDED.filter((name) => !there.has(name));
  if (weights === undefined || missing.length > 0) throw unusable(repo, listed, missing);
  const shards = weights === INDEX_FILE ? await shardsIn(folder) : [];
  for (const shard of shards)
    if (!there.has(shard))
      throw new EngineError(`${repo}: ${INDEX_FILE} names ${shard}, which the repository lacks`);
  return [...WANTED, weights, ...shards];
}

/** The shards that an index names, once it is here. */
async function shardsIn(folder: string): Promise<readonly string[]> {
  const index = join(folder, INDEX_FILE);
  return existsSync(index) ? shardsOf(readRegularText(index), index) : [];
}

function unusable(repo: string, listed: readonly ListedFile[], missing: readonly string[]) {
  const ggufs = ggufFiles(listed);
  if (ggufs !== "")
    return new EngineError(
      `${repo} is not in Hugging Face's layout, but has GGUF files: name one of them, such as ${repo}/${ggufs.split(", ")[0]} (${ggufs})`,
    );
  if (missing.length > 0) return new EngineError(`${repo} has no ${missing.join(" and no ")}`);
  const pickle = listed.some(({ path }) => /\.(bin|pt|pth|ckpt)$/.test(path));
  return new EngineError(
    `${repo} has no ${WEIGHTS_FILE} or ${INDEX_FILE}${pickle ? "; its weights are pickle files, which may contain code and are not loaded" : ""}`,
  );
}

/** Whether an earlier download has everything. */
async function isWhole(folder: string): Promise<boolean> {
  if (!NEEDED.every((name) => existsSync(join(folder, name)))) return false;
  if (existsSync(join(folder, WEIGHTS_FILE))) return true;
  const shards = await shardsIn(folder);
  return shards.length > 0 && shards.every((name) => existsSync(join(folder, name)));
}
