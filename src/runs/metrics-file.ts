/**
 * Metrics of a run: one JSON object per line, appended as they come.
 *
 * Other programs read this file, so checksums are in one beside it: a line for each line, or a dash
 * where none is known.
 */
import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeSync,
} from "node:fs";
import { crc32 } from "node:zlib";
import { explainIo } from "../io-error.js";
import { RunError } from "./run-error.js";
import { writeSmallFile } from "./small-file.js";

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
    const whole = wholeLines(readFileSync(path));
    truncateSync(path, whole.length);
    const known = readSums(path);
    const sums = textLines(whole).map((_, index) => known[index] ?? UNKNOWN);
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
  const kept: string[] = [];
  const keptSums: string[] = [];
  const damaged: string[] = [];
  const sums = readSums(path);
  for (const [index, text] of textLines(wholeLines(readFileSync(path))).entries()) {
    const line = parsed(text);
    if (line === undefined || differs(text, sums[index])) damaged.push(text);
    else if (keep(line)) {
      kept.push(text);
      keptSums.push(sums[index] ?? UNKNOWN);
    } else break;
  }
  if (damaged.length > 0) {
    const aside = `${path}.damaged`;
    appendFileSync(aside, joined(damaged));
    onProblem(`${path}: ${damaged.length} damaged lines were moved to ${aside}`);
  }
  // Should this be cut short, there are no checksums, and not those of other lines.
  rmSync(sumsPath(path), { force: true });
  writeSmallFile(path, joined(kept));
  writeSmallFile(sumsPath(path), joined(keptSums));
}

/** Lines whose numbers have changed since they were written; undefined if nothing is known. */
export function changedMetrics(path: string): readonly string[] | undefined {
  if (!existsSync(path) || !existsSync(sumsPath(path))) return undefined;
  const sums = readSums(path);
  return textLines(wholeLines(readFileSync(path))).flatMap((text, index) =>
    differs(text, sums[index]) ? [`${path}:${index + 1}: changed (checksum mismatch)`] : [],
  );
}

/**
 * Reads all complete lines; an incomplete last line is skipped with a warning, a damaged one with
 * its number.
 */
export function readMetrics(path: string, onProblem: (message: string) => void): MetricsLine[] {
  if (!existsSync(path)) return [];
  const bytes = readFileSync(path);
  const whole = wholeLines(bytes);
  if (whole.length < bytes.length) onProblem(`${path}: the last line was cut off; left out`);
  const lines: MetricsLine[] = [];
  for (const [index, text] of textLines(whole).entries()) {
    const line = parsed(text);
    if (line === undefined) onProblem(`${path}:${index + 1}: not a JSON object; left out`);
    else lines.push(line);
  }
  return lines;
}

const textLines = (whole: Buffer): string[] => whole.toString("utf8").split("\n").slice(0, -1);
const joined = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");

function parsed(line: string): MetricsLine | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? (value as MetricsLine) : undefined;
  } catch {
    return undefined;
  }
}

const UNKNOWN = "-";
const sumsPath = (path: string): string => path.replace(/\.jsonl$/, ".crc32");
const sumOf = (text: string): string => crc32(text).toString(16).padStart(8, "0");

function readSums(path: string): readonly string[] {
  const file = sumsPath(path);
  return existsSync(file) ? textLines(wholeLines(readFileSync(file))) : [];
}

function differs(text: string, sum = UNKNOWN): boolean {
  return sum !== UNKNOWN && sum !== sumOf(text);
}

/** The bytes up to and including the last line break. */
function wholeLines(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.lastIndexOf("\n") + 1);
}
