/** Small files of a run, written atomically, with readable errors. */
import { writeFileAtomicallySync } from "../files/atomic-file.js";
import { explainIo } from "../files/io-error.js";
import { RunError } from "./run-error.js";

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
