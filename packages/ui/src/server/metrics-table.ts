/** Metrics as columns, and the lines that were added since. */
import { closeSync, existsSync, fstatSync, readSync } from "node:fs";
import { openRegular } from "@pawl/core/files/regular-file.js";
import {
  checkLines,
  countSums,
  lastSums,
  type MetricsLine,
  parseMetrics,
  readSums,
} from "@pawl/core/runs/metrics-file.js";
import { metricsPath } from "@pawl/core/runs/small-file.js";
import { columnsOf } from "../report/thin.js";
import type { MetricsTable } from "./api.js";

/** How far a metrics file was read. */
export interface MetricsPlace {
  /** The byte after the last whole line. */
  readonly end: number;
  /** The same among the checksums. */
  readonly sums: number;
  /** Which file it is: a resumed run writes another one. 0 if there is none. */
  readonly file: number;
}

/** Lines of a metrics file from a place on. Those that are damaged are not among them. */
export interface MetricsPart {
  readonly lines: readonly MetricsLine[];
  readonly place: MetricsPlace;
  /** The damaged lines, counted from 1 at the place where reading began. */
  readonly damaged: readonly number[];
  /** How many lines are known by their checksums alone: they are missing from the end. */
  readonly lost: number;
}

/** The most of a file that is read: some hundred thousand updates. */
const MOST_BYTES = 2 ** 28;

/** Where a metrics file begins. */
const START: MetricsPlace = { end: 0, sums: 0, file: 0 };

/** The whole lines from a place on. A file that was cut since is read again from its start. */
export function readMetricsFrom(
  folder: string,
  { end: from, sums: at }: MetricsPlace,
  most = MOST_BYTES,
): MetricsPart {
  const read = readText(folder, (size) => [from, Math.min(size, from + most)]);
  const { lines, at: next } = checkLines(read.texts, read.sums, at);
  const isWhole = read.end >= read.size;
  return {
    ...split(lines),
    place: { end: read.end, sums: next, file: read.file },
    lost: isWhole ? countSums(read.sums, next) : 0,
  };
}

/** The place at a byte up to which a file was read before. */
export const placeAt = (folder: string, end: number): MetricsPlace => ({
  ...readMetricsFrom(folder, START, end).place,
  end,
});

/**
 * The last lines of a file, of as many as fit into the given bytes those that are chosen: the others
 * are not compared with their checksums either, since that takes longest of a long list of runs.
 */
export function lastLines(
  folder: string,
  choose: (texts: readonly string[]) => readonly string[],
  bytes = 2 ** 16,
): Omit<MetricsPart, "lost"> {
  let isCut = false;
  const read = readText(folder, (size) => {
    isCut = size > bytes;
    return [Math.max(0, size - bytes), size];
  });
  // The first line may lack its beginning.
  const texts = isCut ? read.texts.slice(1) : read.texts;
  const { lines, at } = checkLines(choose(texts), read.sums, lastSums(read.sums, texts.length));
  return { ...split(lines), place: { end: read.end, sums: at, file: read.file } };
}

function split(
  checked: ReturnType<typeof checkLines>["lines"],
): Pick<MetricsPart, "lines" | "damaged"> {
  const lines: MetricsLine[] = [];
  const damaged: number[] = [];
  for (const [index, { text, isChanged }] of checked.entries()) {
    const values = isChanged ? undefined : parseMetrics(text);
    if (values === undefined) damaged.push(index + 1);
    else lines.push(values);
  }
  return { lines, damaged };
}

interface ReadText {
  /** Whole lines. */
  readonly texts: readonly string[];
  readonly sums: string;
  /** The byte after the last of them, and the file's size. */
  readonly end: number;
  readonly size: number;
  readonly file: number;
}

/** The whole lines between two bytes; which, is said once the size is known. */
function readText(
  folder: string,
  range: (size: number) => readonly [from: number, to: number],
): ReadText {
  const path = metricsPath(folder);
  if (!existsSync(path)) return { texts: [], sums: readSums(path), end: 0, size: 0, file: 0 };
  const opened = openRegular(path);
  try {
    const { size: known, ino: file } = fstatSync(opened);
    const [first, last] = range(known);
    if (last <= first)
      return { texts: [], sums: "", end: Math.min(first, known), size: known, file };
    // Before the lines: a run that is being written has a line before its checksum.
    const sums = readSums(path);
    const { size } = fstatSync(opened);
    const [from, to] = range(size);
    const bytes = Buffer.allocUnsafe(to - from);
    const read = bytes.subarray(0, readSync(opened, bytes, 0, bytes.length, from));
    const whole = read.lastIndexOf(0x0a) + 1;
    const texts = read.toString("utf8", 0, whole).split("\n").slice(0, -1);
    return { texts, sums, end: from + whole, size, file };
  } finally {
    closeSync(opened);
  }
}

/** The metrics of a run as columns; only the named ones, if names are given. */
export function metricsTable(folder: string, names?: readonly string[]): MetricsTable {
  const part = readMetricsFrom(folder, START);
  const { lines } = part;
  const wanted = names === undefined ? undefined : new Set(names);
  const columns = columnsOf(
    lines,
    (name) => wanted === undefined || wanted.has(name) || isAxis(name),
  );
  return { ...columns, end: part.place.end, problems: problemsOf(folder, part) };
}

/** Most damaged lines that are named. */
const MOST_NAMED = 5;

function problemsOf(folder: string, { damaged, lost, place }: MetricsPart): readonly string[] {
  const more = damaged.length > MOST_NAMED ? ` and ${damaged.length - MOST_NAMED} more` : "";
  const advice = `pawl check ${folder} says more`;
  return [
    ...(damaged.length > 0
      ? [
          `damaged lines of metrics.jsonl are left out: ${damaged.slice(0, MOST_NAMED).join(", ")}${more}; ${advice}`,
        ]
      : []),
    ...(lost > 0
      ? [
          place.file === 0
            ? `metrics.jsonl is missing: it had ${lost} lines; ${advice}`
            : `metrics.jsonl lacks its last lines: ${lost} are missing; ${advice}`,
        ]
      : []),
  ];
}

/** What the x axis can be made of. */
const isAxis = (name: string): boolean => name === "train.tokens" || name.startsWith("seconds.");
