/**
 * Metrics of a run: one JSON object per line, appended as they come; `metrics-sums.ts` has the
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
import { explainIo } from "../files/io-error.js";
import { readRegular } from "../files/regular-file.js";
import {
  type CheckedLine,
  checkLines,
  countSums,
  readSums,
  sumOf,
  sumsPath,
  UNKNOWN_SUM,
} from "./metrics-sums.js";
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
