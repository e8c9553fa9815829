/** Commands that show the beginnings, ends and sizes of texts. */
import * as files from "../shell/file-system.js";
import type { Call } from "../shell/shell.js";
import { countOf, eachFile, options, out, pathOf, readInput } from "./call.js";

/** `-5` as `-n 5`. */
const withCount = (call: Call): Call => ({
  ...call,
  args: call.args.map((one, n) =>
    /^-\d+$/.test(one) && !/^-[nc]$|^--(lines|bytes)$/.test(call.args[n - 1] ?? "")
      ? `-n${one.slice(1)}`
      : one,
  ),
});

const cannotOpen = (name: string, problem: string): string =>
  problem === "Is a directory"
    ? `error reading '${name}': ${problem}`
    : `cannot open '${name}' for reading: ${problem}`;

// Where the first ones end, and where the last ones begin.
const firstBytes = (text: string, count: number): number => Math.min(count, text.length);
const lastBytes = (text: string, count: number): number => Math.max(0, text.length - count);

function firstLines(text: string, count: number): number {
  let at = 0;
  for (let n = 0; n < count && at < text.length; n++)
    at = text.indexOf("\n", at) + 1 || text.length;
  return at;
}

function lastLines(text: string, count: number): number {
  let at = text.length;
  for (let n = 0; n < count && at > 0; n++) at = at < 2 ? 0 : text.lastIndexOf("\n", at - 2) + 1;
  return at;
}

export function head(call: Call): number {
  const given = options(withCount(call), "n:c:qvz", {
    lines: "n",
    bytes: "c",
    quiet: "q",
    verbose: "v",
  });
  const bytes = given.value("c");
  const asked = bytes ?? given.value("n") ?? "10";
  const count = countOf(
    asked.replace(/^-/, ""),
    `number of ${bytes === undefined ? "lines" : "bytes"}`,
  );
  const isAllBut = asked.startsWith("-");
  const { operands } = given;
  const hasTitles = (operands.length > 1 && !given.has("q")) || given.has("v");
  let isFirst = true;
  // What it does not read is left for the next reader.
  const stream = call.shell.streams.get(0);
  if (operands.length === 0 && bytes !== undefined && !isAllBut) {
    out(call, readInput(call, count));
    return 0;
  }
  const before = stream !== undefined && "position" in stream ? stream.position : 0;
  return eachFile(
    call,
    operands,
    (text, name) => {
      if (hasTitles)
        out(call, `${isFirst ? "" : "\n"}==> ${name === "-" ? "standard input" : name} <==\n`);
      isFirst = false;
      if (bytes !== undefined) {
        out(call, text.slice(0, isAllBut ? lastBytes(text, count) : firstBytes(text, count)));
        return;
      }
      const shown = text.slice(0, isAllBut ? lastLines(text, count) : firstLines(text, count));
      if (operands.length === 0 && stream !== undefined && "position" in stream)
        stream.position = before + shown.length;
      out(call, shown);
    },
    cannotOpen,
    bytes !== undefined && !isAllBut ? count : undefined,
  );
}

export function tail(call: Call): number {
  const args = call.args.map((one, n) => (n === 0 && /^\+\d+$/.test(one) ? `-n${one}` : one));
  const given = options(withCount({ ...call, args }), "n:c:qvfFs:z", {
    lines: "n",
    bytes: "c",
    quiet: "q",
    verbose: "v",
    follow: "f",
  });
  const bytes = given.value("c");
  const asked = bytes ?? given.value("n") ?? "10";
  const count = countOf(
    asked.replace(/^[-+]/, ""),
    `number of ${bytes === undefined ? "lines" : "bytes"}`,
  );
  const isFrom = asked.startsWith("+");
  const { operands } = given;
  const hasTitles = (operands.length > 1 && !given.has("q")) || given.has("v");
  let isFirst = true;
  return eachFile(
    call,
    operands,
    (text, name) => {
      if (hasTitles)
        out(call, `${isFirst ? "" : "\n"}==> ${name === "-" ? "standard input" : name} <==\n`);
      isFirst = false;
      const [first, last] = bytes === undefined ? [firstLines, lastLines] : [firstBytes, lastBytes];
      out(call, text.slice(isFrom ? first(text, Math.max(0, count - 1)) : last(text, count)));
    },
    cannotOpen,
  );
}

export function wc(call: Call): number {
  const given = options(call, "lwcmL", {
    lines: "l",
    words: "w",
    bytes: "c",
    chars: "m",
    "max-line-length": "L",
  });
  const kinds = [..."lwmcL"].filter((one) => given.has(one));
  const asked = kinds.length > 0 ? kinds : [..."lwc"];
  const rows: { readonly counts: readonly number[]; readonly name: string }[] = [];
  const { operands } = given;
  const status = eachFile(call, operands, (text, name) => {
    const counts = asked.map((kind) => {
      if (kind === "l") return text.split("\n").length - 1;
      if (kind === "w") return text.split(/\s+/).filter((word) => word !== "").length;
      if (kind === "L") return Math.max(0, ...text.split("\n").map((line) => line.length));
      return text.length;
    });
    rows.push({ counts, name: operands.length === 0 ? "" : name });
  });
  if (operands.length > 1) {
    const totals = asked.map((kind, n) => {
      const column = rows.map(({ counts }) => counts[n]!);
      return kind === "L" ? Math.max(0, ...column) : column.reduce((sum, one) => sum + one, 0);
    });
    rows.push({ counts: totals, name: "total" });
  }
  const width = widthOf(call, operands, asked, rows);
  for (const { counts, name } of rows)
    out(
      call,
      `${counts.map((count) => String(count).padStart(width)).join(" ")}${name === "" ? "" : ` ${name}`}\n`,
    );
  return status;
}

/** As wide as the size of all files together, and 7 for what has no size before it is read. */
function widthOf(
  call: Call,
  operands: readonly string[],
  asked: readonly string[],
  rows: readonly { counts: readonly number[] }[],
): number {
  if (asked.length === 1 && operands.length < 2) return 1;
  if (operands.length === 0) {
    const stream = call.shell.streams.get(0);
    if (stream?.kind !== "file") return 7;
  }
  const sizes = operands.map((name) => files.lookUp(call.shell.machine.fs, pathOf(call, name)));
  if (sizes.some((one) => one !== undefined && one.kind !== "file")) return 7;
  const total = sizes.reduce((sum, one) => sum + (one?.content.length ?? 0), 0);
  return Math.max(
    1,
    String(total).length,
    ...(sizes.length === 0
      ? rows.flatMap(({ counts }) => counts.map((n) => String(n).length))
      : []),
  );
}
