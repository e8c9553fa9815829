/** Results of world-model commands as JSON, for other programs and for the record. */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { writeFileAtomicallySync } from "../atomic-file.js";

/** One line of JSON; NaN is omitted, because JSON has none. */
export function finiteJson(value: unknown, indent?: number): string {
  return JSON.stringify(
    value,
    (_, one: unknown) => (typeof one === "number" && !Number.isFinite(one) ? undefined : one),
    indent,
  );
}

/** Writes a result with a time stamp, if a file was given. */
export function writeResult(path: string | undefined, value: object): void {
  if (path === undefined) return;
  mkdirSync(dirname(path), { recursive: true });
  const dated = { createdAt: new Date().toISOString(), ...value };
  writeFileAtomicallySync(path, `${finiteJson(dated, 2)}\n`);
}
