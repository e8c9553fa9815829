/** The weights of a start, by digest: two comparisons' runs can be paired if they began alike. */
import { createHash } from "node:crypto";
import { closeSync, existsSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import { openRegular } from "@pawl/core/files/regular-file.js";
import { readResult } from "./result-file.js";

/** The folder with a start's weights and tokenizer, inside the start's. */
export const MODEL = "model";
const WEIGHTS = /^(adapter_)?model.*\.safetensors$/;

/** The weight files in a model's folder, in order. */
export const weightFiles = (folder: string): readonly string[] =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => WEIGHTS.test(name))
        .sort()
    : [];

/** The digest of a model's weights; undefined if there are none in the folder. */
export function weightsDigest(folder: string): string | undefined {
  const files = weightFiles(folder);
  if (files.length === 0) return undefined;
  const hash = createHash("sha256");
  // In pieces: weights can be larger than a buffer.
  const piece = Buffer.alloc(1 << 20);
  for (const name of files) {
    hash.update(`${name}\n`);
    const file = openRegular(join(folder, name));
    try {
      for (let read = readSync(file, piece); read > 0; read = readSync(file, piece))
        hash.update(piece.subarray(0, read));
    } finally {
      closeSync(file);
    }
  }
  return hash.digest("hex");
}

/** The digest of a start's weights: as recorded, or of those that are there; undefined without either. */
export const startWeights = (folder: string): string | undefined =>
  readResult(folder)?.weights ?? weightsDigest(join(folder, MODEL));
