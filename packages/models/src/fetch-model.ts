/** Models by names that are not folders: GGUF files, ids of the Hugging Face hub, models of PyPI. */
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { EngineError } from "@pawl/core/engine/engine.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { ggufFolder } from "./gguf/gguf-convert.js";
import { isGgufName } from "./gguf/gguf-file.js";
import { completeCommit, fetchSnapshot, type ListedFile } from "./hub/hub-snapshot.js";
import { folderFacts, ggufFacts, type ModelFacts } from "./model-facts.js";
import type { FetchedModel, FetchOptions, ModelOrigin } from "./model-origin.js";
import { isPypiName, pypiFile, pypiGguf, pypiModel } from "./pypi/pypi-model.js";
import { INDEX_FILE, shardsOf, WEIGHTS_FILE } from "./weights/checkpoint.js";

// Models of the Hugging Face hub. Only data is fetched: configuration, tokenizer, and weights as
// safetensors or GGUF; never pickle, never code.

const NEEDED = ["config.json", "tokenizer.json"];
const WANTED = [
  ...NEEDED,
  "tokenizer_config.json",
  "special_tokens_map.json",
  "chat_template.jinja",
  "generation_config.json",
];

/** Fetches a model of the hub, or one GGUF file of it. */
async function hubModel(name: HubName, options: FetchOptions = {}): Promise<FetchedModel> {
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
async function hubGguf(
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
    isComplete: holds(file),
  });
  return { path: join(folder, file), origin: { model: `${repo}/${file}`, revision: commit } };
}

const holds = (file: string) => async (there: string) => existsSync(join(there, file));

/** A model of the hub without its weights. */
interface HubPreview extends FetchedModel {
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

/** Names of models on the hub: `OWNER/NAME`, with `/FILE` and `@REVISION` if wanted. */

/** A parsed name. */
interface HubName {
  /** `OWNER/NAME` */
  readonly repo: string;
  /** A branch, a tag or a commit. */
  readonly revision: string;
  /** One file of the repository. */
  readonly file?: string;
}

/** Parses a name; undefined if it is not one. */
export function parseHubName(name: string): HubName | undefined {
  const parts =
    /^([A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*)(?:\/([\w.-]+(?:\/[\w.-]+)*))?(?:@([\w][\w./-]*))?$/.exec(
      name,
    );
  if (parts === null || name.includes("..")) return undefined;
  const [, repo, file, revision = "main"] = parts;
  return { repo: repo!, revision, file };
}

/** Brings the model of that name into a folder; undefined if the name is that of a folder. */
export async function fetchModel(
  name: string,
  options: FetchOptions = {},
): Promise<FetchedModel | undefined> {
  if (isGgufFile(name)) return ggufFolder(name, options);
  if (isOnPypi(name)) return pypiModel(name, options);
  const id = hubName(name);
  return id && hubModel(id, options);
}

/** The GGUF file of that name, fetched if it is elsewhere; undefined if it is another name. */
export async function fetchGguf(
  name: string,
  options: FetchOptions = {},
): Promise<string | undefined> {
  if (isGgufFile(name)) return name;
  if (isOnPypi(name)) return (await pypiGguf(name, options)).path;
  const { file, ...id } = hubName(name) ?? {};
  return file === undefined
    ? undefined
    : (await hubGguf({ ...(id as HubName), file }, options)).path;
}

/** Describes the model of that name without its weights; undefined if it is that of a folder. */
export async function describeFetched(
  name: string,
  options: FetchOptions = {},
): Promise<(ModelFacts & { readonly where: string }) | undefined> {
  const gguf = await fetchGguf(name, options);
  if (gguf !== undefined) return { where: gguf, ...(await ggufFacts(gguf)) };
  const id = hubName(name);
  if (id === undefined) return undefined;
  const { folder, origin, bytes } = await previewHubModel(id, options);
  const where = `${origin.model} on the hub, commit ${origin.revision}`;
  return { where, ...(await folderFacts(folder, folder, bytes)) };
}

/** Whether a name is that of a GGUF file or of a model of the hub or PyPI, and not of a folder. */
export function isFetched(name: string): boolean {
  return isGgufFile(name) || isOnPypi(name) || hubName(name) !== undefined;
}

/** Whether a model can be opened without a download: it is a path, or was fetched before. */
export async function isHere(
  name: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Promise<boolean> {
  if (isOnPypi(name)) return existsSync(pypiFile(name, environment));
  const id = hubName(name);
  if (id === undefined) return existsSync(name);
  const isComplete = id.file === undefined ? isWhole : holds(id.file);
  return (await completeCommit({ ...id, environment, isComplete })) !== undefined;
}

/** A path that exists is always a path. */
const isOnPypi = (name: string): boolean => isPypiName(name) && !existsSync(name);

function isGgufFile(name: string): boolean {
  return isGgufName(name) && existsSync(name) && statSync(name).isFile();
}

/**
 * A path that does not exist is an id of the hub only if not even its parent exists: with a folder
 * `runs`, `runs/first` is a run that is missing.
 */
function hubName(name: string): HubName | undefined {
  if (existsSync(name) || existsSync(dirname(name.split("@")[0]!))) return undefined;
  return parseHubName(name);
}
