/** Commands that show or cut texts: head, tail, wc, cut, tr, and their like. */
import * as files from "../shell/file-system.js";
import { FileError } from "../shell/inodes.js";
import { spend } from "../shell/machine.js";
import type { Call } from "../shell/shell.js";
import { write } from "../shell/streams.js";
import {
  complain,
  countOf,
  eachFile,
  Failure,
  joinLines,
  linesOf,
  options,
  out,
  pathOf,
  readInput,
} from "./call.js";
import { LETTERS } from "./translate.js";
export function nl(call: Call): number {
  const given = options(call, "b:w:s:n:v:i:");
  const width = Number(given.value("w") ?? 6);
  const separator = given.value("s") ?? "\t";
  const all = given.value("b") === "a";
  let line = Number(given.value("v") ?? 1);
  return eachFile(call, given.operands, (text) => {
    for (const one of linesOf(text)) {
      if (one === "" && !all) {
        out(call, `${" ".repeat(width + separator.length)}\n`);
        continue;
      }
      const shown =
        given.value("n") === "ln"
          ? String(line).padEnd(width)
          : String(line).padStart(width, given.value("n") === "rz" ? "0" : " ");
      out(call, `${shown}${separator}${one}\n`);
      line += Number(given.value("i") ?? 1);
    }
  });
}

export const tac = (call: Call): number =>
  eachFile(call, call.args, (text) =>
    out(
      call,
      text
        .split(/(?<=\n)/)
        .filter((one) => one !== "")
        .reverse()
        .join(""),
    ),
  );

export const rev = (call: Call): number =>
  eachFile(call, call.args, (text) =>
    out(
      call,
      text
        .split("\n")
        .map((line) => [...line].reverse().join(""))
        .join("\n"),
    ),
  );

export function fold(call: Call): number {
  const given = options(
    { ...call, args: call.args.map((one) => (/^-\d+$/.test(one) ? `-w${one.slice(1)}` : one)) },
    "w:sb",
    { width: "w", spaces: "s" },
  );
  const width = countOf(given.value("w") ?? "80", "number of columns");
  if (width === 0) throw new Failure("invalid number of columns: '0'");
  return eachFile(call, given.operands, (text) => {
    const folded = linesOf(text).flatMap((line) => {
      const parts: string[] = [];
      let rest = line;
      while (rest.length > width) {
        const space = given.has("s") ? rest.lastIndexOf(" ", width - 1) : -1;
        const at = space < 0 ? width : space + 1;
        parts.push(rest.slice(0, at));
        rest = rest.slice(at);
      }
      return [...parts, rest];
    });
    const whole = joinLines(folded);
    out(call, text.endsWith("\n") || text === "" ? whole : whole.slice(0, -1));
  });
}

/** The places that a list such as `1,3-5,7-` means. */
export function rangesOf(list: string): (place: number) => boolean {
  const ranges = list.split(",").map((part) => {
    const found = /^(\d*)(-?)(\d*)$/.exec(part);
    if (found === null || part === "" || part === "-")
      throw new Failure(`invalid field value '${part}'`);
    const from = found[1] === "" ? 1 : Number(found[1]);
    if (from === 0) throw new Failure("fields are numbered from 1");
    const to =
      found[2] === "" ? from : found[3] === "" ? Number.POSITIVE_INFINITY : Number(found[3]);
    if (to < from) throw new Failure("invalid decreasing range");
    return [from, to] as const;
  });
  return (place) => ranges.some(([from, to]) => place >= from && place <= to);
}

export function cut(call: Call): number {
  const given = options(call, "d:f:c:b:sn", {
    delimiter: "d",
    fields: "f",
    characters: "c",
    bytes: "b",
    "only-delimited": "s",
    complement: "n",
    "output-delimiter": "d",
  });
  const list = given.value("f") ?? given.value("c") ?? given.value("b");
  if (list === undefined)
    throw new Failure("you must specify a list of bytes, characters, or fields");
  const [delimiter = "\t", joint = delimiter] = given.values("d");
  if (delimiter.length > 1) throw new Failure("the delimiter must be a single character");
  const chosen = rangesOf(list);
  const isChosen = given.has("n") ? (place: number) => !chosen(place) : chosen;
  return eachFile(call, given.operands, (text) => {
    spend(call.shell.machine, text.length / 16);
    const lines = linesOf(text).flatMap((line) => {
      if (!given.has("f")) return [[...line].filter((_, n) => isChosen(n + 1)).join("")];
      if (!line.includes(delimiter)) return given.has("s") ? [] : [line];
      return [
        line
          .split(delimiter)
          .filter((_, n) => isChosen(n + 1))
          .join(joint),
      ];
    });
    out(call, joinLines(lines));
  });
}

export function paste(call: Call): number {
  const given = options(call, "d:sz", { delimiters: "d", serial: "s" });
  const delimiters = [
    ...(given.value("d") ?? "\t").replace(/\\(.)/g, (_, one: string) =>
      one === "0" ? "\0" : (LETTERS.get(one) ?? one),
    ),
  ].map((one) => (one === "\0" ? "" : one));
  const joint = (n: number): string =>
    delimiters.length === 0 ? "" : delimiters[n % delimiters.length]!;
  const columns: string[][] = [];
  const names = given.operands.length > 0 ? given.operands : ["-"];
  const inputs = names.filter((one) => one === "-").length;
  const status = eachFile(
    call,
    names.filter((one, n) => one !== "-" || names.indexOf(one) === n),
    (text, name) => {
      const lines = linesOf(text);
      if (name !== "-" || inputs < 2 || given.has("s")) columns.push(lines);
      else for (let k = 0; k < inputs; k++) columns.push(lines.filter((_, n) => n % inputs === k));
    },
  );
  const glue = (parts: readonly string[]): string =>
    parts.map((one, n) => (n === 0 ? one : joint(n - 1) + one)).join("");
  if (given.has("s")) out(call, joinLines(columns.map(glue)));
  else {
    const rows = Math.max(0, ...columns.map((column) => column.length));
    out(
      call,
      joinLines(
        Array.from({ length: rows }, (_, row) => glue(columns.map((column) => column[row] ?? ""))),
      ),
    );
  }
  return status;
}

export function tee(call: Call): number {
  const given = options(call, "ai", { append: "a" });
  const text = readInput(call);
  const { fs } = call.shell.machine;
  let status = 0;
  for (const name of given.operands)
    try {
      const number = files.openFile(fs, pathOf(call, name), !given.has("a"));
      const device = fs.inodes.get(number)!.kind === "device";
      if (device && /std|tty/.test(files.contentOf(fs, number))) out(call, text);
      else if (!device)
        write(
          call.shell.machine,
          { kind: "file", number, position: 0, append: given.has("a") },
          text,
        );
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      complain(call, `${name}: ${error.message}`);
      status = 1;
    }
  out(call, text);
  return status;
}

export function split(call: Call): number {
  const given = options(call, "l:b:da:n:", { lines: "l", bytes: "b", "numeric-suffixes": "d" });
  const [name = "-", prefix = "x"] = given.operands;
  const width = Number(given.value("a") ?? 2);
  return eachFile(call, [name], (text) => {
    const bytes = given.value("b");
    const size = countOf(bytes ?? given.value("l") ?? "1000", "number") || 1;
    const units =
      bytes === undefined ? text.split(/(?<=\n)/).filter((one) => one !== "") : [...text];
    for (let n = 0; n * size < units.length; n++) {
      if (n >= 676) throw new Failure("output file suffixes exhausted");
      const suffix = given.has("d")
        ? String(n).padStart(width, "0")
        : (
            String.fromCharCode(97 + Math.floor(n / 26)) + String.fromCharCode(97 + (n % 26))
          ).padStart(width, "a");
      files.writeFile(
        call.shell.machine.fs,
        pathOf(call, prefix + suffix),
        units.slice(n * size, (n + 1) * size).join(""),
      );
    }
  });
}

export function column(call: Call): number {
  const given = options(call, "ts:o:", { table: "t", separator: "s", "output-separator": "o" });
  return eachFile(call, given.operands, (text) => {
    const separator = given.value("s");
    const rows = linesOf(text)
      .filter((line) => line.trim() !== "")
      .map((line) => (separator === undefined ? line.trim().split(/\s+/) : line.split(separator)));
    const widths = rows.reduce<number[]>((all, row) => {
      row.forEach((cell, n) => {
        all[n] = Math.max(all[n] ?? 0, cell.length);
      });
      return all;
    }, []);
    const joint = given.value("o") ?? "  ";
    out(
      call,
      joinLines(
        given.has("t")
          ? rows.map((row) =>
              row
                .map((cell, n) => (n === row.length - 1 ? cell : cell.padEnd(widths[n]!)))
                .join(joint),
            )
          : linesOf(text),
      ),
    );
  });
}

export function expand(call: Call): number {
  const given = options(call, "t:ai", { tabs: "t" });
  const width = Math.max(1, Number(given.value("t") ?? 8));
  return eachFile(call, given.operands, (text) => {
    const lines = text.split("\n").map((line) => {
      if (call.name === "unexpand")
        return line.replace(new RegExp(`^(?: {${Math.min(width, 100)}})+`), (all) =>
          "\t".repeat(all.length / width),
        );
      let done = "";
      for (const one of line)
        done += one === "\t" ? " ".repeat(Math.min(width, 1000) - (done.length % width)) : one;
      return done;
    });
    out(call, lines.join("\n"));
  });
}
