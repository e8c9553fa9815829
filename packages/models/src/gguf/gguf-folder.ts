/**
 * The folder of a GGUF file's model: converted once, into a cache keyed by the file's content.
 *
 * Everything after this sees a model folder, so both engines read GGUF files. The weights take four
 * bytes each.
 */
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { writeFolderAtomically } from "@pawl/core/files/atomic-folder.js";
import { requireDiskSpace } from "@pawl/core/files/disk-space.js";
import { sha256File } from "../checksum.js";
import { modelCacheFolder } from "../model-cache.js";
import type { FetchedModel, FetchOptions } from "../model-origin.js";
import { readGgufModel, writeGgufModel } from "./gguf-convert.js";
import { type GgufFile, openGguf } from "./gguf-file.js";
import { holdsTwoMatrices } from "./gguf-tied.js";

/**
 * Raised when conversion changes, so that folders of an older one are not used. The second one ties
 * matrices that are one, which only concerns files that hold two.
 */
const conversionOf = (gguf: GgufFile): number => (holdsTwoMatrices(gguf) ? 2 : 1);

/** Converts a GGUF file unless that was done before; its SHA-256 may be known already. */
export async function ggufFolder(
  file: string,
  { onNotice, environment }: FetchOptions = {},
  known?: string,
): Promise<FetchedModel> {
  const gguf = openGguf(file);
  const sha256 = known ?? (await sha256File(file));
  const name = basename(file)
    .replace(/\.gguf$/i, "")
    .replace(/[^\w.-]/g, "_");
  const folder = join(
    modelCacheFolder(environment),
    `${name.slice(0, 80)}-${sha256.slice(0, 16)}-${conversionOf(gguf)}`,
  );
  if (!existsSync(join(folder, "config.json"))) {
    const model = await readGgufModel(gguf);
    await requireDiskSpace(folder, model.bytes, `the 32-bit weights of ${file}`);
    if (model.tied !== undefined)
      onNotice?.(
        `${file}: ${model.tied}. To keep them apart, start from a folder of pawl model convert ${file} --keep-output --out FOLDER`,
      );
    onNotice?.(
      `converting ${file} to 32-bit weights (${(model.bytes / 1e6).toFixed(0)} MB) in ${folder}`,
    );
    await writeFolderAtomically(folder, (temporary) => writeGgufModel(model, temporary));
  }
  return { folder, origin: { model: file, sha256 } };
}
