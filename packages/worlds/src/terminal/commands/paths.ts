/** Commands that tell of files and paths. */
import * as files from "../shell/file-system.js";
import { findProgram } from "../shell/find-program.js";
import { spend } from "../shell/machine.js";
import type { Call } from "../shell/shell.js";
import { complain, Failure, options, out, pathOf } from "./call.js";

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const two = (n: number): string => String(n).padStart(2, "0");

/** The letters of a mode, such as `-rw-r--r--`. */
export function modeText({ kind, mode }: Pick<files.Stat, "kind" | "mode">): string {
  const type = { file: "-", folder: "d", link: "l", device: "c" }[kind];
  const bits = [...(mode & 0o777).toString(2).padStart(9, "0")];
  const letters = bits.map((bit, n) => (bit === "1" ? "rwx"[n % 3]! : "-"));
  if ((mode & 0o1000) !== 0) letters[8] = letters[8] === "x" ? "t" : "T";
  return type + letters.join("");
}

export const sizeOf = (stat: files.Stat): number =>
  stat.kind === "folder"
    ? 4096
    : stat.kind === "device"
      ? 0
      : stat.program === undefined
        ? stat.content.length
        : 40_000;

function human(size: number): string {
  if (size < 1024) return String(size);
  let value = size;
  let unit = "";
  for (const next of ["K", "M", "G"]) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return value < 10
    ? `${(Math.ceil(value * 10) / 10).toFixed(1)}${unit}`
    : `${Math.ceil(value)}${unit}`;
}

interface Listed {
  readonly name: string;
  readonly stat: files.Stat;
}

export function ls(call: Call): number {
  const given = options(
    call,
    "alA1RdhtrSFisnpUQmxCGoNLk",
    {
      all: "a",
      "almost-all": "A",
      recursive: "R",
      directory: "d",
      "human-readable": "h",
      reverse: "r",
      color: "C",
      "group-directories-first": "C",
    },
    2,
  );
  const { fs } = call.shell.machine;
  let status = 0;
  const folders: string[] = [];
  const single: Listed[] = [];
  for (const name of given.operands.length > 0 ? given.operands : ["."]) {
    const stat =
      files.lookUp(fs, pathOf(call, name), !given.has("l") && !given.has("d")) ??
      files.lookUp(fs, pathOf(call, name), false);
    if (stat === undefined) {
      complain(call, `cannot access '${name}': No such file or directory`);
      status = 2;
    } else if (stat.kind === "folder" && !given.has("d")) folders.push(name);
    else single.push({ name, stat });
  }
  const parts: string[] = [];
  if (single.length > 0) parts.push(shown(ordered(single)));
  const hasTitles = folders.length > 1 || single.length > 0 || given.has("R") || status !== 0;
  const show = (name: string): void => {
    spend(call.shell.machine, 5);
    const path = pathOf(call, name);
    const stat = (one: string): Listed => ({
      name: one,
      stat: files.lookUp(fs, `${path}/${one}`, false)!,
    });
    const names = files
      .listFolder(fs, path)
      .filter((one) => !one.startsWith(".") || given.has("a") || given.has("A"));
    const list = ordered([...(given.has("a") ? [".", ".."] : []), ...names].map(stat));
    const blocks = list.reduce((sum, one) => sum + Math.ceil(sizeOf(one.stat) / 4096) * 4, 0);
    const total = given.has("l") ? `total ${given.has("h") ? human(blocks * 1024) : blocks}\n` : "";
    parts.push(`${hasTitles ? `${name}:\n` : ""}${total}${shown(list)}`);
    if (given.has("R"))
      for (const one of list)
        if (one.stat.kind === "folder" && !/^\.\.?$/.test(one.name))
          show(name === "/" ? `/${one.name}` : `${name}/${one.name}`);
  };
  for (const name of [...folders].sort()) show(name);
  out(call, parts.join("\n"));
  return status;

  function ordered(list: readonly Listed[]): readonly Listed[] {
    const sorted = [...list].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    if (given.has("t")) sorted.sort((a, b) => b.stat.modified - a.stat.modified);
    if (given.has("S")) sorted.sort((a, b) => sizeOf(b.stat) - sizeOf(a.stat));
    return given.has("r") ? sorted.reverse() : sorted;
  }

  function shown(list: readonly Listed[]): string {
    const mark = ({ name, stat }: Listed): string => {
      if (given.has("p") || given.has("F")) {
        if (stat.kind === "folder") return `${name}/`;
        if (given.has("F") && stat.kind === "link") return `${name}@`;
        if (given.has("F") && (stat.mode & 0o111) !== 0) return `${name}*`;
      }
      return name;
    };
    if (!given.has("l") && !given.has("n") && !given.has("o"))
      return list
        .map(
          (one) =>
            `${given.has("i") ? `${one.stat.number} ` : ""}${given.has("s") ? `${Math.ceil(sizeOf(one.stat) / 4096) * 4} ` : ""}${mark(one)}\n`,
        )
        .join("");
    const rows = list.map((one) => {
      const { stat } = one;
      const links = stat.kind === "folder" ? 2 : stat.links;
      const size = given.has("h") ? human(sizeOf(stat)) : String(sizeOf(stat));
      const target = stat.kind === "link" ? ` -> ${stat.content}` : "";
      const owner = given.has("n") ? "0" : "root";
      return [
        modeText(stat),
        String(links),
        owner,
        given.has("o") ? "" : owner,
        size,
        dateText(call, stat.modified),
        `${mark(one)}${target}`,
      ];
    });
    const width = (column: number): number => Math.max(...rows.map((row) => row[column]!.length));
    const widths = [1, 2, 3, 4].map(width);
    return rows
      .map(([mode, links, user, group, size, date, name]) =>
        [
          mode,
          links!.padStart(widths[0]!),
          user,
          ...(group === "" ? [] : [group]),
          size!.padStart(widths[3]!),
          date,
          name,
        ].join(" "),
      )
      .map((line) => `${line}\n`)
      .join("");
  }
}

function dateText(call: Call, seconds: number): string {
  const date = new Date(seconds * 1000);
  const day = `${MONTHS[date.getUTCMonth()]} ${String(date.getUTCDate()).padStart(2)}`;
  const isRecent = Math.abs(call.shell.machine.time / 1000 - seconds) < 15_778_476;
  return isRecent
    ? `${day} ${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`
    : `${day}  ${date.getUTCFullYear()}`;
}

export function basename(call: Call): number {
  const given = options(call, "as:z", { multiple: "a", suffix: "s" });
  const { operands } = given;
  if (operands.length === 0) throw new Failure("missing operand");
  const many = given.has("a") || given.has("s");
  const suffix = given.value("s") ?? (many ? "" : (operands[1] ?? ""));
  for (const path of many ? operands : operands.slice(0, 1)) {
    const name = path.replace(/\/+$/, "").split("/").at(-1) || (path.startsWith("/") ? "/" : "");
    out(
      call,
      `${suffix !== "" && name !== suffix && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name}\n`,
    );
  }
  return 0;
}

export function dirname(call: Call): number {
  if (call.args.length === 0) throw new Failure("missing operand");
  for (const path of call.args) {
    const bare = path.replace(/\/+$/, "");
    const at = bare.lastIndexOf("/");
    const above = at < 0 ? "." : bare.slice(0, at).replace(/\/+$/, "") || "/";
    out(call, `${bare === "" && path !== "" ? "/" : above}\n`);
  }
  return 0;
}

export function realpath(call: Call): number {
  const given = options(call, "femsqz", { "canonicalize-existing": "e" });
  const { fs } = call.shell.machine;
  if (given.operands.length === 0) throw new Failure("missing operand");
  let status = 0;
  for (const name of given.operands) {
    const path = pathOf(call, name);
    if (call.name === "readlink" && !given.has("f") && !given.has("e") && !given.has("m")) {
      const stat = files.lookUp(fs, path, false);
      if (stat?.kind === "link") out(call, `${stat.content}\n`);
      else status = 1;
      continue;
    }
    if (given.has("e")) files.statFile(fs, path);
    try {
      out(call, `${files.realPath(fs, path)}\n`);
    } catch {
      if (call.name === "realpath") complain(call, `${name}: No such file or directory`);
      status = 1;
    }
  }
  return status;
}

export function which(call: Call): number {
  const given = options(call, "as");
  let status = 0;
  for (const name of given.operands) {
    const found = findProgram(call.shell, name);
    if (found === undefined || found.stat.kind === "folder") status = 1;
    else out(call, `${found.path}\n`);
  }
  return status;
}

export function stat(call: Call): number {
  const given = options(call, "c:Lf", { format: "c", printf: "c" });
  const { fs } = call.shell.machine;
  let status = 0;
  for (const name of given.operands) {
    const there = files.lookUp(fs, pathOf(call, name), given.has("L"));
    if (there === undefined) {
      complain(call, `cannot statx '${name}': No such file or directory`);
      status = 1;
      continue;
    }
    const when = `${new Date(there.modified * 1000).toISOString().slice(0, 19).replace("T", " ")}.000000000 +0000`;
    const kinds = {
      file: there.content === "" ? "regular empty file" : "regular file",
      folder: "directory",
      link: "symbolic link",
      device: "character special file",
    };
    const facts = new Map<string, string>([
      ["n", name],
      ["N", `'${name}'`],
      ["s", String(sizeOf(there))],
      ["a", (there.mode & 0o7777).toString(8)],
      ["A", modeText(there)],
      ["F", kinds[there.kind]],
      ["U", "root"],
      ["G", "root"],
      ["u", "0"],
      ["g", "0"],
      ["i", String(there.number)],
      ["h", String(there.links)],
      ["y", when],
      ["Y", String(there.modified)],
      ["x", when],
      ["X", String(there.modified)],
      ["z", when],
      ["Z", String(there.modified)],
      ["b", String(Math.ceil(sizeOf(there) / 512))],
      ["B", "512"],
      ["%", "%"],
    ]);
    const format = given.value("c");
    if (format !== undefined) {
      out(call, `${format.replace(/%(.)/g, (all, letter: string) => facts.get(letter) ?? all)}\n`);
      continue;
    }
    out(
      call,
      `  File: ${name}\n  Size: ${sizeOf(there)}\t\tBlocks: ${facts.get("b")}\tIO Block: 4096   ${kinds[there.kind]}\nDevice: 0,1\tInode: ${there.number}\tLinks: ${there.links}\nAccess: (0${(there.mode & 0o777).toString(8)}/${modeText(there)})  Uid: (    0/    root)   Gid: (    0/    root)\nAccess: ${when}\nModify: ${when}\nChange: ${when}\n Birth: -\n`,
    );
  }
  return status;
}

export function du(call: Call): number {
  const given = options(call, "shacbkmd:", {
    "max-depth": "d",
    summarize: "s",
    "human-readable": "h",
    bytes: "b",
  });
  const { fs } = call.shell.machine;
  let status = 0;
  const deepest = given.has("s") ? 0 : Number(given.value("d") ?? Number.POSITIVE_INFINITY);
  const show = (size: number, name: string): void => {
    const text = given.has("b")
      ? String(size)
      : given.has("h")
        ? human(size)
        : String(Math.ceil(size / 1024));
    out(call, `${text}\t${name}\n`);
  };
  const walk = (path: string, name: string, depth: number): number => {
    spend(call.shell.machine, 2);
    const there = files.statFile(fs, path, false);
    const own = given.has("b") ? sizeOf(there) : Math.ceil(sizeOf(there) / 4096) * 4096;
    if (there.kind !== "folder") {
      if (given.has("a") || depth === 0) show(own, name);
      return own;
    }
    let sum = own;
    for (const inside of files.listFolder(fs, path))
      sum += walk(`${path}/${inside}`, `${name}/${inside}`, depth + 1);
    if (depth <= deepest) show(sum, name);
    return sum;
  };
  let total = 0;
  for (const name of given.operands.length > 0 ? given.operands : ["."]) {
    if (files.lookUp(fs, pathOf(call, name)) === undefined) {
      complain(call, `cannot access '${name}': No such file or directory`);
      status = 1;
    } else total += walk(pathOf(call, name), name, 0);
  }
  if (given.has("c")) show(total, "total");
  return status;
}

export function file(call: Call): number {
  const given = options(call, "bi");
  for (const name of given.operands) {
    const there = files.lookUp(call.shell.machine.fs, pathOf(call, name), false);
    const text = there?.content ?? "";
    const kind =
      there === undefined
        ? `cannot open \`${name}' (No such file or directory)`
        : there.kind === "folder"
          ? "directory"
          : there.kind === "link"
            ? `symbolic link to ${text}`
            : text === ""
              ? "empty"
              : text.startsWith("#!")
                ? `${/^#!.*bash/.test(text) ? "Bourne-Again shell" : "POSIX shell"} script, ASCII text executable`
                : /\0/.test(text)
                  ? "data"
                  : /^[{[]/.test(text.trim()) && isJson(text)
                    ? "JSON text data"
                    : /^[\0-\x7f]*$/.test(text)
                      ? "ASCII text"
                      : "Unicode text, UTF-8 text";
    out(call, given.has("b") ? `${kind}\n` : `${name}: ${kind}\n`);
  }
  return 0;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
