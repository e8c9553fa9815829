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
  const kept: SurveyedLine[] = [];
  const damaged: SurveyedLine[] = [];
  for (const line of surveyed(readSums(path), wholeLines(readFileSync(path))).lines) {
    if (line.values === undefined || line.isChanged) damaged.push(line);
    else if (keep(line.values)) kept.push(line);
    else break;
  }
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
    if (sums.length > 0) onProblem(`${path} is missing: it had ${sums.length} lines`);
    return [];
  }
  const bytes = readFileSync(path);
  const whole = wholeLines(bytes);
  if (whole.length < bytes.length) onProblem(`${path}: the last line was cut off; left out`);
  const { lines, lost } = surveyed(sums, whole);
  if (lost > 0) onProblem(`${path}: its last lines are missing: ${lost} of ${sums.length}`);
  return lines.flatMap(({ values, isChanged }, index): readonly MetricsLine[] => {
    const place = `${path}:${index + 1}`;
    if (values === undefined) onProblem(`${place}: not a JSON object; left out`);
    else if (isChanged) onProblem(`${place}: changed since it was written (checksum mismatch)`);
    return values === undefined ? [] : [values];
  });
}

/** A line as it was found. */
interface SurveyedLine {
  readonly text: string;
  /** Undefined if it is not a JSON object. */
  readonly values: MetricsLine | undefined;
  /** Its checksum; a dash if none is known. */
  readonly sum: string;
  /** Whether it differs from what was written. */
  readonly isChanged: boolean;
}

/**
 * The lines with their checksums. Damage can join lines or split them, here or among the checksums:
 * then those of later lines have other numbers, and are found by what they are.
 */
function surveyed(
  sums: readonly string[],
  whole: Buffer,
): { readonly lines: readonly SurveyedLine[] /** From the end. */; readonly lost: number } {
  const texts = textLines(whole);
  const own = texts.map(sumOf);
  let next = 0;
  const lines = texts.map((text, index) => {
    const values = parsed(text);
    const found = sums.indexOf(own[index]!, next);
    if (found >= 0) {
      next = found + 1;
      return { text, values, sum: own[index]!, isChanged: false };
    }
    // The next checksum is that of the next line: this one has none.
    const isSkipped = index + 1 < own.length && sums[next] === own[index + 1];
    const sum = isSkipped || next >= sums.length ? undefined : sums[next++];
    const isChanged = sum !== undefined && /^[0-9a-f]{8}$/.test(sum);
    return { text, values, sum: UNKNOWN, isChanged };
  });
  return { lines, lost: sums.length - next };
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

/** The bytes up to and including the last line break. */
function wholeLines(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.lastIndexOf("\n") + 1);
}
