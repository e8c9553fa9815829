/** Small files of a run: where they are, and how they are written: atomically, with readable errors. */

import { join } from "node:path";
import { writeFileAtomicallySync } from "../files/atomic-file.js";
import { explainIo } from "../files/io-error.js";
import { RunError } from "./run-error.js";

/** The record of a run's episodes. */
export const episodesPath = (folder: string): string => join(folder, "episodes.jsonl.gz");
/** The metrics of a run. */
export const metricsPath = (folder: string): string => join(folder, "metrics.jsonl");
/** The folder of TensorBoard's event files. */
export const eventsPath = (folder: string): string => join(folder, "tensorboard");

/**
 * Writes a text so that a reader, or a crash at any moment, sees either the old content or the new.
 */
export function writeSmallFile(path: string, content: string): void {
  try {
    writeFileAtomicallySync(path, content);
  } catch (error) {
    throw new RunError(`could not write ${explainIo(error, path)}`, { cause: error });
  }
}
