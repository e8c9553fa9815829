/** `diff` and `cmp`. */
import * as files from "../shell/file-system.js";
import { spend } from "../shell/machine.js";
import type { Call } from "../shell/shell.js";
import { Failure, linesOf, options, out, pathOf, readNamed } from "./call.js";

/** A change: lines of the first text, from and up to, and lines of the second. */
interface Change {
  readonly a: readonly [number, number];
  readonly b: readonly [number, number];
}

const MOST_LINES = 20_000;

/** The least changes that make one list of the other (Myers). */
function changesBetween(call: Call, a: readonly string[], b: readonly string[]): readonly Change[] {
  if (a.length + b.length > MOST_LINES) throw new Failure("memory exhausted", 2);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA -= 1;
    endB -= 1;
  }
  const [n, m] = [endA - start, endB - start];
  const most = n + m;
  const trace: Map<number, number>[] = [];
  let reach = new Map<number, number>([[1, 0]]);
  let distance = 0;
  search: for (; distance <= most; distance++) {
    trace.push(new Map(reach));
    spend(call.shell.machine, 1 + distance / 2);
    for (let k = -distance; k <= distance; k += 2) {
      const down =
        k === -distance || (k !== distance && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1;
      let y = x - k;
      while (x < n && y < m && a[start + x] === b[start + y]) {
        x += 1;
        y += 1;
      }
      reach.set(k, x);
      if (x >= n && y >= m) break search;
    }
  }
  reach = new Map();
  const edits: { readonly isDeleted: boolean; readonly at: number; readonly other: number }[] = [];
  let [x, y] = [n, m];
  for (let d = distance; d > 0; d--) {
    const before = trace[d]!;
    const k = x - y;
    const down = k === -d || (k !== d && (before.get(k - 1) ?? -1) < (before.get(k + 1) ?? -1));
    const previous = down ? k + 1 : k - 1;
    const px = before.get(previous) ?? 0;
    const py = px - previous;
    edits.push(
      down ? { isDeleted: false, at: py, other: px } : { isDeleted: true, at: px, other: py },
    );
    [x, y] = [px, py];
  }
  edits.reverse();
  const changes: { a: [number, number]; b: [number, number] }[] = [];
  for (const { isDeleted, at, other } of edits) {
    const last = changes.at(-1);
    const [pa, pb] = isDeleted ? [at, other] : [other, at];
    if (last !== undefined && last.a[1] === start + pa && last.b[1] === start + pb) {
      if (isDeleted) last.a[1] += 1;
      else last.b[1] += 1;
    } else
      changes.push({
        a: [start + pa, start + pa + (isDeleted ? 1 : 0)],
        b: [start + pb, start + pb + (isDeleted ? 0 : 1)],
      });
  }
  return changes;
}

export function diff(call: Call): number {
  const given = options(
    call,
    "qurNiwbBU:sya",
    {
      brief: "q",
      unified: "u",
      recursive: "r",
      "new-file": "N",
      "ignore-case": "i",
      "ignore-all-space": "w",
      "ignore-space-change": "b",
      "ignore-blank-lines": "B",
      "report-identical-files": "s",
      color: "a",
    },
    2,
  );
  const [first, second] = given.operands;
  if (first === undefined || second === undefined)
    throw new Failure(`missing operand after '${first ?? "diff"}'`, 2);
  const { fs } = call.shell.machine;
  const key = (line: string): string => {
    let text = line;
    if (given.has("w")) text = text.replace(/\s+/g, "");
    else if (given.has("b")) text = text.replace(/\s+/g, " ").trimEnd();
    return given.has("i") ? text.toLowerCase() : text;
  };
  const kindOf = (name: string) =>
    name === "-" ? "file" : files.lookUp(fs, pathOf(call, name))?.kind;
  const isUnified = given.has("u") || given.has("U");
  const context = Number(given.value("U") ?? 3);
  const pair = (a: string, b: string, isNested: boolean): number => {
    const [ka, kb] = [kindOf(a), kindOf(b)];
    const missing = ka === undefined ? a : kb === undefined ? b : undefined;
    if (missing !== undefined && !(given.has("N") && isNested))
      throw new Failure(`${missing}: No such file or directory`, 2);
    if (ka === "folder" && kb === "folder") return folders(a, b);
    if (ka === "folder") return pair(`${a}/${b.split("/").at(-1)}`, b, isNested);
    if (kb === "folder") return pair(a, `${b}/${a.split("/").at(-1)}`, isNested);
    const textA = ka === undefined ? "" : readNamed(call, a);
    const textB = kb === undefined ? "" : readNamed(call, b);
    const title = isNested
      ? `diff ${call.args.filter((one) => one.startsWith("-")).join(" ")} ${a} ${b}\n`
      : "";
    return texts(a, b, textA, textB, title);
  };
  const texts = (a: string, b: string, textA: string, textB: string, title: string): number => {
    if (textA === textB) {
      if (given.has("s")) out(call, `Files ${a} and ${b} are identical\n`);
      return 0;
    }
    if (/\0/.test(textA) || /\0/.test(textB)) {
      out(call, `Binary files ${a} and ${b} differ\n`);
      return 2;
    }
    const [la, lb] = [endedLines(textA), endedLines(textB)];
    const changes = changesBetween(call, la.map(key), lb.map(key)).filter(
      (change) =>
        !given.has("B") ||
        [...la.slice(...change.a), ...lb.slice(...change.b)].some((line) => line.trim() !== ""),
    );
    if (changes.length === 0) return 0;
    if (given.has("q")) out(call, `Files ${a} and ${b} differ\n`);
    else
      out(
        call,
        title +
          (isUnified ? unified(call, a, b, la, lb, changes, context) : normal(la, lb, changes)),
      );
    return 1;
  };
  const folders = (a: string, b: string): number => {
    const [na, nb] = [a, b].map((one) => files.listFolder(fs, pathOf(call, one)));
    let status = 0;
    for (const name of [...new Set([...na!, ...nb!])].sort()) {
      spend(call.shell.machine, 5);
      const [pa, pb] = [`${a}/${name}`, `${b}/${name}`];
      const where = !na!.includes(name) ? b : !nb!.includes(name) ? a : undefined;
      if (where !== undefined && !given.has("N")) {
        out(call, `Only in ${where}: ${name}\n`);
        status = Math.max(status, 1);
      } else if (kindOf(pa) === "folder" && kindOf(pb) === "folder" && !given.has("r"))
        out(call, `Common subdirectories: ${pa} and ${pb}\n`);
      else status = Math.max(status, pair(pa, pb, true));
    }
    return status;
  };
  return pair(first, second, false);
}

/** Lines with what says that the last has no end. */
function endedLines(text: string): string[] {
  const lines = linesOf(text);
  if (text !== "" && !text.endsWith("\n"))
    lines[lines.length - 1] += "\n\\ No newline at end of file";
  return lines;
}

const range = ([from, to]: readonly [number, number]): string =>
  to - from === 1 ? String(to) : to === from ? String(from) : `${from + 1},${to}`;

function normal(a: readonly string[], b: readonly string[], changes: readonly Change[]): string {
  return changes
    .map((change) => {
      const removed = a
        .slice(...change.a)
        .map((line) => `< ${line}\n`)
        .join("");
      const added = b
        .slice(...change.b)
        .map((line) => `> ${line}\n`)
        .join("");
      const letter = removed === "" ? "a" : added === "" ? "d" : "c";
      return `${range(change.a)}${letter}${range(change.b)}\n${removed}${letter === "c" ? "---\n" : ""}${added}`;
    })
    .join("");
}

function unified(
  call: Call,
  nameA: string,
  nameB: string,
  a: readonly string[],
  b: readonly string[],
  changes: readonly Change[],
  context: number,
): string {
  const when = (name: string): string => {
    const seconds =
      name === "-"
        ? call.shell.machine.time / 1000
        : (files.lookUp(call.shell.machine.fs, pathOf(call, name))?.modified ?? 0);
    return `${new Date(Math.floor(seconds) * 1000).toISOString().slice(0, 19).replace("T", " ")}.000000000 +0000`;
  };
  let text = `--- ${nameA}\t${when(nameA)}\n+++ ${nameB}\t${when(nameB)}\n`;
  for (let n = 0; n < changes.length; ) {
    let last = n;
    while (
      last + 1 < changes.length &&
      changes[last + 1]!.a[0] - changes[last]!.a[1] <= 2 * context
    )
      last += 1;
    const group = changes.slice(n, last + 1);
    const from = Math.max(0, group[0]!.a[0] - context);
    const to = Math.min(a.length, group.at(-1)!.a[1] + context);
    const shift = group[0]!.b[0] - group[0]!.a[0];
    const [fromB, toB] = [from + shift, group.at(-1)!.b[1] + (to - group.at(-1)!.a[1])];
    const shown = (start: number, end: number): string =>
      end - start === 1 ? String(start + 1) : `${end === start ? start : start + 1},${end - start}`;
    text += `@@ -${shown(from, to)} +${shown(fromB, toB)} @@\n`;
    let at = from;
    for (const change of group) {
      text += a
        .slice(at, change.a[0])
        .map((line) => ` ${line}\n`)
        .join("");
      text += a
        .slice(...change.a)
        .map((line) => `-${line}\n`)
        .join("");
      text += b
        .slice(...change.b)
        .map((line) => `+${line}\n`)
        .join("");
      at = change.a[1];
    }
    text += a
      .slice(at, to)
      .map((line) => ` ${line}\n`)
      .join("");
    n = last + 1;
  }
  return text;
}

export function cmp(call: Call): number {
  const given = options(call, "sln:i:b", { silent: "s", quiet: "s" }, 2);
  const [first, second = "-"] = given.operands;
  if (first === undefined) throw new Failure("missing operand after 'cmp'", 2);
  const read = (name: string): string => {
    try {
      return readNamed(call, name);
    } catch (error) {
      throw new Failure(
        given.has("s")
          ? `${name}: ${(error as Error).message}`
          : `${name}: ${(error as Error).message}`,
        2,
      );
    }
  };
  const [a, b] = [read(first), read(second)];
  if (a === b) return 0;
  if (given.has("s")) return 1;
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at += 1;
  const line = a.slice(0, at).split("\n").length;
  if (at === a.length || at === b.length) {
    const short = a.length < b.length ? first : second;
    const isEmpty = Math.min(a.length, b.length) === 0;
    throw new Failure(
      isEmpty
        ? `EOF on ${short} which is empty`
        : `EOF on ${short} after byte ${at}, ${a[at - 1] === "\n" ? `line ${line - 1}` : `in line ${line}`}`,
    );
  }
  out(call, `${first} ${second} differ: char ${at + 1}, line ${line}\n`);
  return 1;
}
