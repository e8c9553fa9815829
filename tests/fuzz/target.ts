/** A reader to fuzz, and what targets are made of. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** A reader to fuzz. */
export interface Target {
  readonly inputs: () => readonly Buffer[];
  /** Reads an input: fine, or a `UserError`. Anything else that it throws is a failure. */
  run(bytes: Buffer, folder: string): unknown;
}

/** Inputs from texts, or from values as JSON. */
export function text(...parts: readonly unknown[]): readonly Buffer[] {
  return parts.map((part) => Buffer.from(typeof part === "string" ? part : JSON.stringify(part)));
}

/** Writes an input where a reader of files finds it. */
export function put(folder: string, name: string, bytes: Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}
