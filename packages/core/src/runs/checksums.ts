/**
 * Checksums of a folder's files, in a file beside them: weights with flipped bits load without a
 * word, and only make worse numbers.
 */
import { closeSync, existsSync, readdirSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { openRegular, readRegularText } from "../files/regular-file.js";
import { RunError } from "./run-error.js";
import { writeSmallFile } from "./small-file.js";

const FILE = "pawl-checksums.json";
/** One for all files: a run with many checkpoints would otherwise leave its heap in pieces. */
const chunk = Buffer.alloc(2 ** 18);

/** What is known of one file. */
interface Sum {
  readonly bytes: number;
  readonly crc32: string;
}

/** Writes the checksums of all files in a folder. */
export function sealFolder(folder: string): void {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name !== FILE && statSync(join(folder, name)).isFile())
    .sort();
  const sums = Object.fromEntries(files.map((name) => [name, sumOf(join(folder, name))]));
  writeSmallFile(join(folder, FILE), `${JSON.stringify(sums, undefined, 2)}\n`);
}

/** Whether the checksums of a folder's files are known. */
export const isSealed = (folder: string): boolean => existsSync(join(folder, FILE));

/** What tells the files of a folder from those of another; undefined if no checksums are known. */
export function sealOf(folder: string): string | undefined {
  const path = join(folder, FILE);
  return existsSync(path) ? sumOf(path).crc32 : undefined;
}

/**
 * What is wrong with a folder's files, or with one of them; nothing is known of folders that older
 * versions wrote.
 */
export function brokenSeals(folder: string, only?: string): readonly string[] {
  const path = join(folder, FILE);
  if (!existsSync(path)) return [];
  let sums: Readonly<Record<string, Sum>>;
  try {
    sums = JSON.parse(readRegularText(path)) as Readonly<Record<string, Sum>>;
  } catch (error) {
    return [`${path} cannot be read: ${(error as Error).message}`];
  }
  return Object.entries(sums).flatMap(([name, expected]) => {
    const file = join(folder, name);
    if (only !== undefined && name !== only) return [];
    if (!existsSync(file)) return [`${file} is missing`];
    const { bytes, crc32: found } = sumOf(file);
    if (bytes !== expected.bytes) return [`${file} has ${bytes} bytes, expected ${expected.bytes}`];
    return found === expected.crc32 ? [] : [`${file} is damaged (checksum mismatch)`];
  });
}

/** Refuses a folder whose files were lost or changed since they were written. */
export function requireSeals(folder: string, remedy: string): void {
  const [first] = brokenSeals(folder);
  if (first !== undefined) throw new RunError(`${first}. ${remedy}`);
}

function sumOf(path: string): Sum {
  const file = openRegular(path);
  let bytes = 0;
  let sum = 0;
  try {
    for (let read = readSync(file, chunk); read > 0; read = readSync(file, chunk)) {
      bytes += read;
      sum = crc32(chunk.subarray(0, read), sum);
    }
  } finally {
    closeSync(file);
  }
  return { bytes, crc32: sum.toString(16).padStart(8, "0") };
}
