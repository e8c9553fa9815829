/** Metrics of a run: one JSON object per line, appended as they come. */
import { closeSync, existsSync, openSync, readFileSync, truncateSync, writeSync } from "node:fs";
import { explainIo, RunError } from "./run-error.js";
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
  if (existsSync(path)) truncateSync(path, wholeLines(readFileSync(path)).length);
  let file: number;
  try {
    file = openSync(path, "a");
  } catch (error) {
    throw new RunError(`could not open ${explainIo(error, path)}`, { cause: error });
  }
  return {
    append(line) {
      try {
        writeSync(file, `${JSON.stringify(line)}\n`);
      } catch (error) {
        throw new RunError(`could not record to ${explainIo(error, path)}`, { cause: error });
      }
    },
    close: () => closeSync(file),
  };
}

/** Truncates a metrics file before the first line that is not to be kept. */
export function cutMetrics(path: string, keep: (line: MetricsLine) => boolean): void {
  if (!existsSync(path)) return;
  const lines = readMetrics(path, () => undefined);
  const end = lines.findIndex((line) => !keep(line));
  const kept = end < 0 ? lines : lines.slice(0, end);
  writeSmallFile(path, kept.map((line) => `${JSON.stringify(line)}\n`).join(""));
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
  for (const [index, line] of whole.toString("utf8").split("\n").slice(0, -1).entries()) {
    try {
      lines.push(JSON.parse(line) as MetricsLine);
    } catch {
      onProblem(`${path}:${index + 1}: not a JSON object; left out`);
    }
  }
  return lines;
}

/** The bytes up to and including the last line break. */
function wholeLines(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.lastIndexOf("\n") + 1);
}
