/** Results of world-model commands as JSON, for other programs and for the record. */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { writeFileAtomicallySync } from "@pawl/core/files/atomic-file.js";
import { WriteError, writeError } from "@pawl/core/files/io-error.js";

/** One line of JSON; NaN is omitted, because JSON has none. */
export function finiteJson(value: unknown, indent?: number): string {
  return JSON.stringify(
    value,
    (_, one: unknown) => (typeof one === "number" && !Number.isFinite(one) ? undefined : one),
    indent,
  );
}

/**
 * Writes a result with a time stamp, if a file was given. It may have taken hours, so if there is no
 * room for it the error holds it.
 */
export function writeResult(path: string | undefined, value: object): void {
  if (path === undefined) return;
  const dated = { createdAt: new Date().toISOString(), ...value };
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileAtomicallySync(path, `${finiteJson(dated, 2)}\n`);
  } catch (error) {
    const told = writeError(error, path);
    if (!(told instanceof WriteError)) throw told;
    throw new WriteError(
      `${told.message}. Nothing has to be computed again, this is the result:\n${finiteJson(dated)}`,
      { cause: error },
    );
  }
}
