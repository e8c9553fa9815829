/** Weights in several files: an index says which tensor is in which. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { EngineError } from "@pawl/core/engine/engine.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { z } from "zod";

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
