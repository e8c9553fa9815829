/** Metrics as columns, and the lines that were added since. */
import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { columnsOf } from "../report/columns.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import { metricsPath } from "../runs/run-folder.js";
import type { MetricsTable } from "./api.js";

/** Lines of a metrics file from a byte on. */
export interface MetricsPart {
  readonly lines: readonly MetricsLine[];
  /** The byte after the last whole line. */
  readonly end: number;
  /** Which file it is: a resumed run writes another one. 0 if there is none. */
  readonly file: number;
  readonly problems: readonly string[];
}

/** The most of a file that is read: some hundred thousand updates. */
const MOST_BYTES = 2 ** 28;

/** The whole lines from a byte on. A file that was cut since is read again by starting at 0. */
export function readMetricsFrom(folder: string, from: number, most = MOST_BYTES): MetricsPart {
  const { text, end, file } = readText(folder, (size) => [from, Math.min(size, from + most)]);
  return { ...parse(text), end, file };
}

/** The last lines of a file, as many as fit into the given bytes. */
export function lastLines(
  folder: string,
  bytes = 2 ** 16,
): Pick<MetricsPart, "end" | "file"> & { readonly texts: readonly string[] } {
  let isCut = false;
  const { text, end, file } = readText(folder, (size) => {
    isCut = size > bytes;
    return [Math.max(0, size - bytes), size];
  });
  // The first line may lack its beginning.
  const whole = isCut ? text.slice(text.indexOf("\n") + 1) : text;
  return { texts: whole.split("\n").filter(Boolean), end, file };
}

/** The whole lines between two bytes; which, is said once the size is known. */
function readText(
  folder: string,
  range: (size: number) => readonly [from: number, to: number],
): { readonly text: string; readonly end: number; readonly file: number } {
  const path = metricsPath(folder);
  if (!existsSync(path)) return { text: "", end: 0, file: 0 };
  const opened = openSync(path, "r");
  try {
    const { size, ino: file } = fstatSync(opened);
    const [from, to] = range(size);
    if (to <= from) return { text: "", end: Math.min(from, size), file };
    const bytes = Buffer.allocUnsafe(to - from);
    const read = bytes.subarray(0, readSync(opened, bytes, 0, bytes.length, from));
    const whole = read.lastIndexOf(0x0a) + 1;
    return { text: read.toString("utf8", 0, whole), end: from + whole, file };
  } finally {
    closeSync(opened);
  }
}

function parse(text: string): Pick<MetricsPart, "lines" | "problems"> {
  const lines: MetricsLine[] = [];
  let damaged = 0;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    try {
      const value: unknown = JSON.parse(line);
      if (typeof value === "object" && value !== null) lines.push(value as MetricsLine);
      else damaged += 1;
    } catch {
      damaged += 1;
    }
  }
  return {
    lines,
    problems: damaged === 0 ? [] : [`${damaged} lines of metrics.jsonl are damaged; left out`],
  };
}

/** The metrics of a run as columns; only the named ones, if names are given. */
export function metricsTable(folder: string, names?: readonly string[]): MetricsTable {
  const { lines, end, problems } = readMetricsFrom(folder, 0);
  const wanted = names === undefined ? undefined : new Set(names);
  const columns = columnsOf(
    lines,
    (name) => wanted === undefined || wanted.has(name) || isAxis(name),
  );
  return { ...columns, end, problems };
}

/** What the x axis can be made of. */
const isAxis = (name: string): boolean => name === "train.tokens" || name.startsWith("seconds.");
