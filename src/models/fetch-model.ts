/** Models by names that are not folders: GGUF files and ids of the Hugging Face hub. */
import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { type HubName, parseHubName } from "../hub/hub-name.js";
import { isGgufName } from "./gguf-file.js";
import { ggufFolder } from "./gguf-folder.js";
import { hubModel } from "./hub-model.js";
import type { FetchedModel, FetchOptions } from "./model-origin.js";

/** Brings the model of that name into a folder; undefined if the name is that of a folder. */
export async function fetchModel(
  name: string,
  options: FetchOptions = {},
): Promise<FetchedModel | undefined> {
  if (isGgufFile(name)) return ggufFolder(name, options);
  const id = hubName(name);
  return id === undefined ? undefined : hubModel(id, options);
}

/** Whether a name is that of a GGUF file or of a model of the hub, and not that of a folder. */
export function isFetched(name: string): boolean {
  return isGgufFile(name) || hubName(name) !== undefined;
}

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
