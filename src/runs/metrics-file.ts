/** Metrics of a run: one JSON object a line, appended as they arise. */
import { closeSync, existsSync, openSync, readFileSync, truncateSync, writeSync } from "node:fs";
import { explainIo, RunError } from "./run-error.js";
import { writeSmallFile } from "./small-file.js";

/** One line of metrics: a moment and its named numbers. */
export type MetricsLine = Readonly<Record<string, number>>;

/** An open metrics file to append to. */
export interface MetricsWriter {
  append(line: MetricsLine): void;
  close(): void;
}

/** Opens a metrics file for appending; a torn last line is cut off. */
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

/** Cuts a metrics file off before the first line that is not to be kept. */
export function cutMetrics(path: string, keep: (line: MetricsLine) => boolean): void {
  if (!existsSync(path)) return;
  const lines = readMetrics(path, () => undefined);
  const end = lines.findIndex((line) => !keep(line));
  const kept = end < 0 ? lines : lines.slice(0, end);
  writeSmallFile(path, kept.map((line) => `${JSON.stringify(line)}\n`).join(""));
}

/** Reads all whole lines; a torn last line is left out with a warning, a damaged one with its number. */
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

/** The bytes up to and including the last line's end. */
function wholeLines(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.lastIndexOf("\n") + 1);
}
