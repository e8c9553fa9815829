/**
 * The checksums of a metrics file's lines: a line for each line, or a dash where none is known.
 *
 * They are in a file of their own because other programs read the metrics.
 */
import { existsSync } from "node:fs";
import { crc32 } from "node:zlib";
import { readRegularText } from "../files/regular-file.js";

/** Stands for a checksum that is not known. */
export const UNKNOWN_SUM = "-";

/** Bytes of a checksum with its line break. */
const SUM_BYTES = 9;

/** A line as it was found. */
export interface CheckedLine {
  readonly text: string;
  /** Its checksum; a dash if none is known. */
  readonly sum: string;
  /** Whether it differs from what was written. */
  readonly isChanged: boolean;
}

/** Lines of a metrics file, compared with their checksums. */
export interface CheckedLines {
  readonly lines: readonly CheckedLine[];
  /** Where the checksums of the lines after these begin; past the end for those not written yet. */
  readonly at: number;
}

/** The file with the checksums of a metrics file. */
export const sumsPath = (path: string): string => path.replace(/\.jsonl$/, ".crc32");

/** The checksum of a line without its line break. */
export const sumOf = (text: string): string => crc32(text).toString(16).padStart(8, "0");

/** The whole lines of a metrics file's checksums; empty if there is no such file. */
export function readSums(path: string): string {
  const file = sumsPath(path);
  if (!existsSync(file)) return "";
  const text = readRegularText(file, "latin1");
  return text.slice(0, text.lastIndexOf("\n") + 1);
}

/** Where the last checksums begin, at least as many as are asked for if there are. */
export function lastSums(sums: string, count: number): number {
  const guess = Math.max(0, sums.length - count * SUM_BYTES);
  return guess === 0 ? 0 : sums.indexOf("\n", guess - 1) + 1;
}

/** How many checksums there are from a byte on. */
export const countSums = (sums: string, at = 0): number => sums.slice(at).split("\n").length - 1;

/**
 * Compares lines with the checksums from a byte on. Damage can join lines or split them, here or
 * among the checksums: then those of later lines have other numbers, and are found by what they are.
 */
export function checkLines(texts: readonly string[], sums: string, at = 0): CheckedLines {
  let next = at;
  const lines = texts.map((text, index) => {
    const own = sumOf(text);
    const found = sums.indexOf(`${own}\n`, next);
    if (found >= 0) {
      next = found + SUM_BYTES;
      return { text, sum: own, isChanged: false };
    }
    const unknown = { text, sum: UNKNOWN_SUM, isChanged: false };
    if (next >= sums.length) {
      // Not written yet: the next line's is the one after it.
      next += SUM_BYTES;
      return unknown;
    }
    const end = sums.indexOf("\n", next);
    const sum = sums.slice(next, end);
    // The next checksum is that of the next line: this one has none.
    if (index + 1 < texts.length && sum === sumOf(texts[index + 1]!)) return unknown;
    next = end + 1;
    return { ...unknown, isChanged: /^[0-9a-f]{8}$/.test(sum) };
  });
  return { lines, at: next };
}
