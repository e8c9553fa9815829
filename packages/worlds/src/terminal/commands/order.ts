/** Commands about the order of lines: sort, uniq, comm, join, shuf. */
import { writeFile } from "../shell/file-system.js";
import { spend } from "../shell/machine.js";
import type { Call } from "../shell/shell.js";
import {
  eachFile,
  Failure,
  joinLines,
  linesOf,
  options,
  out,
  pathOf,
  readInput,
  readNamed,
} from "./call.js";

interface Key {
  readonly from: number;
  readonly fromCharacter: number;
  readonly to: number;
  readonly toCharacter: number;
  readonly flags: string;
}

function keyOf(text: string): Key {
  const found = /^(\d+)(?:\.(\d+))?([a-zA-Z]*)(?:,(\d+)(?:\.(\d+))?([a-zA-Z]*))?$/.exec(text);
  if (found === null || found[1] === "0")
    throw new Failure(`invalid field specification '${text}'`, 2);
  const number = (at: number, otherwise: number): number => Number(found[at] ?? otherwise);
  return {
    from: number(1, 1),
    fromCharacter: number(2, 1),
    to: number(4, Number.POSITIVE_INFINITY),
    toCharacter: number(5, 0),
    flags: (found[3] ?? "") + (found[6] ?? ""),
  };
}

/** The part of a line that a key means. */
function partOf(line: string, key: Key, separator: string | undefined): string {
  if (separator !== undefined) {
    const fields = line.split(separator);
    const inside = fields.slice(
      key.from - 1,
      key.to === Number.POSITIVE_INFINITY ? undefined : key.to,
    );
    const start = key.fromCharacter - 1;
    if (key.toCharacter > 0 && inside.length > 0) {
      const last = inside.length - 1;
      inside[last] = inside[last]!.slice(0, key.toCharacter);
    }
    return inside.join(separator).slice(start);
  }
  // Without a separator, a field begins with the blanks before it.
  const fields = line.match(/[ \t]*[^ \t]+/g) ?? [];
  const inside = fields.slice(
    key.from - 1,
    key.to === Number.POSITIVE_INFINITY ? undefined : key.to,
  );
  if (key.toCharacter > 0 && inside.length > 0) {
    const last = inside.length - 1;
    const blanks = key.flags.includes("b") ? /^[ \t]*/.exec(inside[last]!)![0].length : 0;
    inside[last] = inside[last]!.slice(0, blanks + key.toCharacter);
  }
  const text = inside.join("");
  return (key.flags.includes("b") ? text.trimStart() : text).slice(key.fromCharacter - 1);
}

const MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(" ");
const compare = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0);

const numeric = (text: string): number => Number(/^\s*(-?\d*\.?\d*)/.exec(text)![1]) || 0;
const UNITS = "KMGTPE";

function human(text: string): number {
  const found = /^\s*(-?\d*\.?\d*)([KMGTPEk]?)/.exec(text)!;
  return (
    (Number(found[1]) || 0) * 1024 ** (UNITS.indexOf((found[2] ?? "").toUpperCase() || "!") + 1)
  );
}

/** How two texts compare under flags such as `n`, `r` and `f`. */
function comparison(flags: string): (a: string, b: string) => number {
  if (flags.includes("n")) return (a, b) => numeric(a) - numeric(b);
  if (flags.includes("g"))
    return (a, b) => (Number.parseFloat(a) || 0) - (Number.parseFloat(b) || 0);
  if (flags.includes("h")) return (a, b) => human(a) - human(b);
  if (flags.includes("V")) return compareVersions;
  if (flags.includes("M")) {
    const month = (text: string): number => MONTHS.indexOf(text.trim().slice(0, 3).toUpperCase());
    return (a, b) => month(a) - month(b);
  }
  const shown = (text: string): string => {
    let result = text;
    if (flags.includes("b")) result = result.trimStart();
    if (flags.includes("d")) result = result.replace(/[^A-Za-z0-9 \t]/g, "");
    return flags.includes("f") ? result.toUpperCase() : result;
  };
  return (a, b) => compare(shown(a), shown(b));
}

function compareVersions(a: string, b: string): number {
  const parts = (text: string): readonly string[] => text.match(/\d+|\D+/g) ?? [];
  const [left, right] = [parts(a), parts(b)];
  for (let n = 0; n < Math.max(left.length, right.length); n++) {
    const [one = "", two = ""] = [left[n], right[n]];
    const both = /^\d/.test(one) && /^\d/.test(two);
    const order = both ? Number(one) - Number(two) : compare(one, two);
    if (order !== 0) return order;
  }
  return 0;
}

export function sort(call: Call): number {
  const given = options(
    call,
    "nrufbdgVhMsck:t:o:zRmCS:T:",
    {
      "numeric-sort": "n",
      reverse: "r",
      unique: "u",
      key: "k",
      "field-separator": "t",
      output: "o",
      "ignore-case": "f",
      "version-sort": "V",
      "human-numeric-sort": "h",
      stable: "s",
      check: "c",
      "random-sort": "R",
      "general-numeric-sort": "g",
    },
    2,
  );
  const lines: string[] = [];
  const status = eachFile(
    call,
    given.operands,
    (text) => {
      for (const line of linesOf(text, given.has("z") ? "\0" : "\n")) lines.push(line);
    },
    (name, problem) =>
      problem === "Is a directory"
        ? `read failed: ${name}: ${problem}`
        : `cannot read: ${name}: ${problem}`,
  );
  if (status !== 0) return 2;
  const separator = given.value("t") === "\\0" ? "\0" : given.value("t");
  if (separator !== undefined && separator.length !== 1)
    throw new Failure(separator === "" ? "empty tab" : `multi-character tab '${separator}'`, 2);
  const global = [..."nrfbdgVhM"].filter((one) => given.has(one)).join("");
  const keys = given.values("k").map(keyOf);
  const rules = (keys.length > 0 ? keys : [undefined]).map((key) => {
    const flags = key === undefined || key.flags === "" ? global : key.flags;
    const order = comparison(flags);
    const sign = flags.includes("r") ? -1 : 1;
    const full = key && { ...key, flags };
    return {
      part: (line: string): string => (full === undefined ? line : partOf(line, full, separator)),
      compare: (a: string, b: string): number => sign * order(a, b),
    };
  });
  spend(
    call.shell.machine,
    lines.length * Math.max(1, Math.log2(lines.length + 1)) * 0.3 * rules.length,
  );
  const entries = lines.map((line) => ({ line, parts: rules.map(({ part }) => part(line)) }));
  type Entry = (typeof entries)[number];
  const byKeys = (a: Entry, b: Entry): number => {
    for (let n = 0; n < rules.length; n++) {
      const order = rules[n]!.compare(a.parts[n]!, b.parts[n]!);
      if (order !== 0) return order;
    }
    return 0;
  };
  const last = given.has("r") ? -1 : 1;
  const isStable = given.has("s") || given.has("u");
  const whole = (a: Entry, b: Entry): number =>
    byKeys(a, b) || (isStable ? 0 : last * compare(a.line, b.line));
  if (given.has("c") || given.has("C")) {
    const at = entries.findIndex(
      (entry, n) => n > 0 && whole(entries[n - 1]!, entry) > (given.has("u") ? -1 : 0),
    );
    if (at < 0) return 0;
    throw new Failure(`${given.operands[0] ?? "-"}:${at + 1}: disorder: ${entries[at]!.line}`);
  }
  if (given.has("R")) call.shell.machine.random.shuffle(entries);
  else entries.sort(whole);
  const kept = given.has("u")
    ? entries.filter((entry, n) => n === 0 || byKeys(entries[n - 1]!, entry) !== 0)
    : entries;
  const text = joinLines(
    kept.map(({ line }) => line),
    given.has("z") ? "\0" : "\n",
  );
  const target = given.value("o");
  if (target === undefined) out(call, text);
  else writeFile(call.shell.machine.fs, pathOf(call, target), text);
  return 0;
}

export function uniq(call: Call): number {
  const given = options(call, "cdDuif:s:w:z", {
    count: "c",
    repeated: "d",
    unique: "u",
    "ignore-case": "i",
    "skip-fields": "f",
    "skip-chars": "s",
    "check-chars": "w",
    "all-repeated": "D",
  });
  const [name = "-", target] = given.operands;
  const shown = (line: string): string => {
    let text = line;
    for (let n = Number(given.value("f") ?? 0); n > 0; n--) text = text.replace(/^\s*\S+/, "");
    text = text.slice(Number(given.value("s") ?? 0));
    if (given.value("w") !== undefined) text = text.slice(0, Number(given.value("w")));
    return given.has("i") ? text.toLowerCase() : text;
  };
  return eachFile(call, [name], (text) => {
    const groups: string[][] = [];
    let last: string | undefined;
    for (const line of linesOf(text)) {
      const key = shown(line);
      if (key === last) groups.at(-1)!.push(line);
      else groups.push([line]);
      last = key;
    }
    const kept = groups.filter(
      (group) =>
        (given.has("d") || given.has("D") ? group.length > 1 : true) &&
        (given.has("u") ? group.length === 1 : true),
    );
    const lines = kept.flatMap((group) => {
      if (given.has("D")) return group;
      return [given.has("c") ? `${String(group.length).padStart(7)} ${group[0]}` : group[0]!];
    });
    if (target === undefined) out(call, joinLines(lines));
    else writeFile(call.shell.machine.fs, pathOf(call, target), joinLines(lines));
  });
}

export function comm(call: Call): number {
  const given = options(call, "123", { "output-delimiter": "1" });
  const [first, second] = given.operands;
  if (first === undefined || second === undefined) throw new Failure("missing operand");
  const [left, right] = [linesOf(readNamed(call, first)), linesOf(readNamed(call, second))];
  const lines: string[] = [];
  const tell = (kind: "1" | "2" | "3", line: string): void => {
    if (given.has(kind)) return;
    const before = (["1", "2", "3"] as const)
      .slice(0, Number(kind) - 1)
      .filter((one) => !given.has(one));
    lines.push("\t".repeat(before.length) + line);
  };
  let [a, b] = [0, 0];
  while (a < left.length || b < right.length) {
    const order = a >= left.length ? 1 : b >= right.length ? -1 : compare(left[a]!, right[b]!);
    if (order < 0) tell("1", left[a++]!);
    else if (order > 0) tell("2", right[b++]!);
    else {
      tell("3", left[a++]!);
      b += 1;
    }
  }
  out(call, joinLines(lines));
  return 0;
}

export function join(call: Call): number {
  const given = options(call, "t:1:2:j:a:v:o:e:i");
  const [first, second] = given.operands;
  if (first === undefined || second === undefined) throw new Failure("missing operand");
  const separator = given.value("t");
  const cut = (text: string): readonly (readonly string[])[] =>
    linesOf(text).map((line) =>
      separator === undefined ? line.trim().split(/[ \t]+/) : line.split(separator),
    );
  const [left, right] = [cut(readNamed(call, first)), cut(readNamed(call, second))];
  const at = [
    Number(given.value("1") ?? given.value("j") ?? 1) - 1,
    Number(given.value("2") ?? given.value("j") ?? 1) - 1,
  ] as const;
  const lines: string[] = [];
  const rest = (row: readonly string[], key: number): readonly string[] =>
    row.filter((_, n) => n !== key);
  const format = given.value("o")?.split(/[ ,]+/);
  const line = (a: readonly string[] | undefined, b: readonly string[] | undefined): void => {
    const key = (a?.[at[0]] ?? b?.[at[1]])!;
    const fields =
      format === undefined || format[0] === "auto"
        ? [key, ...(a ? rest(a, at[0]) : []), ...(b ? rest(b, at[1]) : [])]
        : format.map((one) => {
            if (one === "0") return key;
            const [file, field] = one.split(".").map(Number) as [number, number];
            return (file === 1 ? a : b)?.[field - 1] ?? given.value("e") ?? "";
          });
    lines.push(fields.join(separator ?? " "));
    spend(call.shell.machine, 1);
  };
  const keys = new Map<string, (readonly string[])[]>();
  for (const row of right) keys.set(row[at[1]] ?? "", [...(keys.get(row[at[1]] ?? "") ?? []), row]);
  const used = new Set<string>();
  const isOnly = given.has("v");
  const unpaired = new Set([...given.values("a"), ...given.values("v")]);
  for (const row of left) {
    const key = row[at[0]] ?? "";
    const fitting = keys.get(key) ?? [];
    if (fitting.length > 0) used.add(key);
    if (!isOnly) for (const other of fitting) line(row, other);
    if (fitting.length === 0 && unpaired.has("1")) line(row, undefined);
  }
  if (unpaired.has("2"))
    for (const row of right) if (!used.has(row[at[1]] ?? "")) line(undefined, row);
  out(call, joinLines(lines));
  return 0;
}

export function shuf(call: Call): number {
  const given = options(call, "n:i:er", { "head-count": "n", "input-range": "i", echo: "e" });
  const range = /^(\d+)-(\d+)$/.exec(given.value("i") ?? "");
  if (range !== null && Number(range[2]) - Number(range[1]) > 1e6)
    throw new Failure("the range is too large");
  const lines =
    range !== null
      ? Array.from({ length: Number(range[2]) - Number(range[1]) + 1 }, (_, n) =>
          String(Number(range[1]) + n),
        )
      : given.has("e")
        ? [...given.operands]
        : linesOf(
            given.operands[0] === undefined ? readInput(call) : readNamed(call, given.operands[0]),
          );
  call.shell.machine.random.shuffle(lines);
  out(
    call,
    joinLines(given.value("n") === undefined ? lines : lines.slice(0, Number(given.value("n")))),
  );
  return 0;
}
