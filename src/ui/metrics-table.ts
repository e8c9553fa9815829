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
  readonly problems: readonly string[];
}

/** The most of a file that is read: some hundred thousand updates. */
const MOST_BYTES = 2 ** 28;

/** The whole lines from a byte on. A file that was cut since is read again by starting at 0. */
export function readMetricsFrom(folder: string, from: number, most = MOST_BYTES): MetricsPart {
  const path = metricsPath(folder);
  if (!existsSync(path)) return { lines: [], end: 0, problems: [] };
  const file = openSync(path, "r");
  try {
    const { size } = fstatSync(file);
    const length = Math.min(size - from, most);
    if (length <= 0) return { lines: [], end: Math.min(from, size), problems: [] };
    const bytes = Buffer.alloc(length);
    const whole = bytes.subarray(0, readSync(file, bytes, 0, length, from)).lastIndexOf(0x0a) + 1;
    return { ...parse(bytes.toString("utf8", 0, whole)), end: from + whole };
  } finally {
    closeSync(file);
  }
}

/** The last lines of a file, as many as fit into the given bytes. */
export function lastMetrics(folder: string, bytes = 2 ** 16): readonly MetricsLine[] {
  const path = metricsPath(folder);
  if (!existsSync(path)) return [];
  const file = openSync(path, "r");
  try {
    const { size } = fstatSync(file);
    const from = Math.max(0, size - bytes);
    const buffer = Buffer.alloc(size - from);
    readSync(file, buffer, 0, buffer.length, from);
    const text = buffer.toString("utf8", 0, buffer.lastIndexOf(0x0a) + 1);
    return parse(from === 0 ? text : text.slice(text.indexOf("\n") + 1)).lines;
  } finally {
    closeSync(file);
  }
}

function parse(text: string): Omit<MetricsPart, "end"> {
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
