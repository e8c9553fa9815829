/**
 * Metrics of a run: one JSON object per line, appended as they come; its other half has the
 * checksum of each.
 */
import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  rmSync,
  truncateSync,
  writeSync,
} from "node:fs";
import { crc32 } from "node:zlib";
import { explainIo } from "../files/io-error.js";
import { readRegular, readRegularText } from "../files/regular-file.js";
import { RunError } from "./run-error.js";
import { writeSmallFile } from "./small-file.js";

// The checksums of a metrics file's lines: a line for each line, or a dash where none is known.
//
// They are in a file of their own because other programs read the metrics.

/** Stands for a checksum that is not known. */
const UNKNOWN_SUM = "-";

/** Bytes of a checksum with its line break. */
const SUM_BYTES = 9;

/** A line as it was found. */
interface CheckedLine {
  readonly text: string;
  /** Its checksum; a dash if none is known. */
  readonly sum: string;
  /** Whether it differs from what was written. */
  readonly isChanged: boolean;
}

/** Lines of a metrics file, compared with their checksums. */
interface CheckedLines {
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

/** One line of metrics: an update and its named numbers. */
export type MetricsLine = Readonly<Record<string, number>>;

/** A metrics file opened for appending. */
export interface MetricsWriter {
  append(line: MetricsLine): void;
  close(): void;
}

/** Opens a metrics file for appending; an incomplete last line is cut off. */
export function openMetricsWriter(path: string): MetricsWriter {
  if (existsSync(path)) {
    const whole = wholeLines(readRegular(path));
    truncateSync(path, whole.length);
    const known = readSums(path).split("\n").slice(0, -1);
    const sums = textLines(whole).map((_, index) => known[index] ?? UNKNOWN_SUM);
    writeSmallFile(sumsPath(path), joined(sums));
  }
  let file: number;
  let sums: number;
  try {
    file = openSync(path, "a");
    sums = openSync(sumsPath(path), "a");
  } catch (error) {
    throw new RunError(`could not open ${explainIo(error, path)}`, { cause: error });
  }
  return {
    append(line) {
      try {
        const text = JSON.stringify(line);
        writeSync(file, `${text}\n`);
        writeSync(sums, `${sumOf(text)}\n`);
      } catch (error) {
        throw new RunError(`could not record to ${explainIo(error, path)}`, { cause: error });
      }
    },
    close() {
      closeSync(file);
      closeSync(sums);
    },
  };
}

/**
 * Truncates a metrics file before the first line that is not to be kept; damaged lines before that
 * are moved into a file beside it.
 */
export function cutMetrics(
  path: string,
  keep: (line: MetricsLine) => boolean,
  onProblem: (message: string) => void,
): void {
  if (!existsSync(path)) return;
  const kept: CheckedLine[] = [];
  const damaged: CheckedLine[] = [];
  const sums = readSums(path);
  const { lines, at } = checkLines(textLines(wholeLines(readRegular(path))), sums);
  let isCut = false;
  for (const line of lines) {
    const values = parseMetrics(line.text);
    if (values === undefined || line.isChanged) damaged.push(line);
    else if (keep(values)) kept.push(line);
    else {
      isCut = true;
      break;
    }
  }
  // Those after a line that is not kept would not have been kept either.
  const lost = isCut ? undefined : lostLines(path, sums, at);
  if (lost !== undefined) onProblem(lost);
  if (damaged.length > 0) {
    const aside = `${path}.damaged`;
    appendFileSync(aside, joined(damaged.map(({ text }) => text)));
    onProblem(`${path}: ${damaged.length} damaged lines were moved to ${aside}`);
  }
  // Should this be cut short, there are no checksums, and not those of other lines.
  rmSync(sumsPath(path), { force: true });
  writeSmallFile(path, joined(kept.map(({ text }) => text)));
  writeSmallFile(sumsPath(path), joined(kept.map(({ sum }) => sum)));
}

/** Whether there are checksums of a metrics file's lines. */
export const hasMetricsSums = (path: string): boolean => existsSync(sumsPath(path));

/**
 * Reads all complete lines; an incomplete last line is skipped with a warning, a damaged one with
 * its number. One that is readable but was changed is read, with a warning.
 */
export function readMetrics(path: string, onProblem: (message: string) => void): MetricsLine[] {
  // Before the lines: a run that is being written has a line before its checksum.
  const sums = readSums(path);
  if (!existsSync(path)) {
    if (sums !== "") onProblem(`${path} is missing: it had ${countSums(sums)} lines`);
    return [];
  }
  const bytes = readRegular(path);
  const whole = wholeLines(bytes);
  if (whole.length < bytes.length) onProblem(`${path}: the last line was cut off; left out`);
  const { lines, at } = checkLines(textLines(whole), sums);
  const lost = lostLines(path, sums, at);
  if (lost !== undefined) onProblem(lost);
  return lines.flatMap(({ text, isChanged }, index): readonly MetricsLine[] => {
    const values = parseMetrics(text);
    const place = `${path}:${index + 1}`;
    if (values === undefined) onProblem(`${place}: not a JSON object; left out`);
    else if (isChanged) onProblem(`${place}: changed since it was written (checksum mismatch)`);
    return values === undefined ? [] : [values];
  });
}

/** Says so if there are checksums from a byte on, and no lines for them. */
function lostLines(path: string, sums: string, at: number): string | undefined {
  const lost = countSums(sums, at);
  return lost === 0
    ? undefined
    : `${path}: its last lines are missing: ${lost} of ${countSums(sums)}`;
}

/** A line's numbers; undefined if it is not a JSON object. */
export function parseMetrics(line: string): MetricsLine | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? (value as MetricsLine) : undefined;
  } catch {
    return undefined;
  }
}

const textLines = (whole: Buffer): string[] => whole.toString("utf8").split("\n").slice(0, -1);
const joined = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");

/** The bytes up to and including the last line break. */
function wholeLines(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.lastIndexOf("\n") + 1);
}
