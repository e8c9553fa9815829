/** Commands that make, copy, move and remove files. */
import * as files from "../shell/file-system.js";
import { FileError } from "../shell/inodes.js";
import type { Call } from "../shell/shell.js";
import { base, complain, countOf, each, eachFile, Failure, options, out, pathOf } from "./call.js";
import { modeOf } from "./modes.js";

export function cat(call: Call): number {
  const given = options(call, "nbsETAvu", { number: "n" });
  let line = 0;
  return eachFile(call, given.operands, (text) => {
    if (
      !given.has("n") &&
      !given.has("b") &&
      !given.has("E") &&
      !given.has("A") &&
      !given.has("s") &&
      !given.has("T")
    ) {
      out(call, text);
      return;
    }
    let wasEmpty = false;
    const shown = text.split(/(?<=\n)/).map((one) => {
      const isEmpty = one === "\n";
      if (given.has("s") && isEmpty && wasEmpty) return "";
      wasEmpty = isEmpty;
      let body = one;
      if (given.has("T") || given.has("A")) body = body.replaceAll("\t", "^I");
      if (given.has("E") || given.has("A")) body = body.replace(/\n$/, "$\n");
      if (given.has("b") ? isEmpty : !given.has("n")) return body;
      line += 1;
      return `${String(line).padStart(6)}\t${body}`;
    });
    out(call, shown.join(""));
  });
}

export function mkdir(call: Call): number {
  const given = options(call, "pm:v", { parents: "p", mode: "m", verbose: "v" });
  const { fs } = call.shell.machine;
  return each(
    call,
    given.operands,
    (name, problem) => `cannot create directory '${name}': ${problem}`,
    (path, name) => {
      if (!given.has("p")) files.makeFolder(fs, path);
      else if (files.lookUp(fs, path)?.kind !== "folder") {
        const parts = path.split("/");
        for (let n = 1; n <= parts.length; n++) {
          const above = parts.slice(0, n).join("/") || "/";
          const there = files.lookUp(fs, above);
          if (there === undefined) files.makeFolder(fs, above);
          else if (there.kind !== "folder")
            throw new FileError(n === parts.length ? "EEXIST" : "ENOTDIR");
        }
      }
      if (given.has("v")) out(call, `mkdir: created directory '${name}'\n`);
      const mode = given.value("m");
      if (mode !== undefined) files.changeMode(fs, path, modeOf(mode, 0o755, true));
    },
  );
}

export function rmdir(call: Call): number {
  const given = options(call, "pv", { parents: "p" });
  return each(
    call,
    given.operands,
    (name, problem) => `failed to remove '${name}': ${problem}`,
    (path, name) => {
      files.removeFolder(call.shell.machine.fs, path);
      if (!given.has("p")) return;
      const parts = name.replace(/\/+$/, "").split("/");
      while (parts.length > 1) {
        parts.pop();
        files.removeFolder(call.shell.machine.fs, pathOf(call, parts.join("/")));
      }
    },
  );
}

export function rm(call: Call): number {
  const given = options(call, "rRfivdI", {
    recursive: "r",
    force: "f",
    verbose: "v",
    dir: "d",
    "no-preserve-root": "I",
  });
  const { fs } = call.shell.machine;
  const isRecursive = given.has("r") || given.has("R");
  let status = 0;
  if (given.operands.length === 0 && given.has("f")) return 0;
  const remove = (path: string, name: string): void => {
    const stat = files.lookUp(fs, path, false);
    if (stat === undefined) {
      if (given.has("f")) return;
      throw new FileError("ENOENT");
    }
    if (stat.kind === "folder") {
      if (!isRecursive) {
        if (!given.has("d")) throw new FileError("EISDIR");
      } else
        for (const inside of files.listFolder(fs, path))
          remove(`${path}/${inside}`, `${name}/${inside}`);
      files.removeFolder(fs, path);
    } else files.removeFile(fs, path);
    if (given.has("v"))
      out(call, stat.kind === "folder" ? `removed directory '${name}'\n` : `removed '${name}'\n`);
  };
  const safe = given.operands.filter((name) => {
    const refused = /^\.{1,2}$/.test(base(name)) && name !== "/";
    if (refused && isRecursive)
      complain(call, `refusing to remove '.' or '..' directory: skipping '${name}'`);
    const isRoot = isRecursive && !given.has("I") && /^\/+$/.test(name);
    if (isRoot)
      complain(
        call,
        `it is dangerous to operate recursively on '${name}'\n${call.name}: use --no-preserve-root to override this failsafe`,
      );
    if (isRoot || (refused && isRecursive)) status = 1;
    return !isRoot && !(refused && isRecursive);
  });
  if (safe.length === 0 && status === 1) return 1;
  return (
    each(call, safe, (name, problem) => `cannot remove '${name}': ${problem}`, remove) || status
  );
}

export function touch(call: Call): number {
  const given = options(call, "acmd:t:r:h", { "no-create": "c", date: "d", reference: "r" });
  const { fs, time } = call.shell.machine;
  const reference = given.value("r");
  const date = given.value("d");
  let at = Math.floor(time / 1000);
  if (reference !== undefined) at = files.statFile(fs, pathOf(call, reference)).modified;
  if (date !== undefined) {
    const parsed = /^@\d+$/.test(date)
      ? Number(date.slice(1)) * 1000
      : Date.parse(/\dZ|[+-]\d\d:?\d\d$/.test(date) ? date : `${date} UTC`);
    if (Number.isNaN(parsed)) throw new Failure(`invalid date format '${date}'`);
    at = Math.floor(parsed / 1000);
  }
  return each(
    call,
    given.operands,
    (name, problem) => `cannot touch '${name}': ${problem}`,
    (path) => {
      if (files.lookUp(fs, path) === undefined) {
        if (given.has("c")) return;
        if (path.endsWith("/")) throw new FileError("ENOENT");
        files.writeFile(fs, path, "");
      }
      files.setModified(fs, path, at);
    },
  );
}

export function mktemp(call: Call): number {
  const given = options(call, "dp:tuq", { directory: "d", tmpdir: "p" });
  const { machine } = call.shell;
  const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  const template = given.operands[0] ?? "tmp.XXXXXXXXXX";
  const folder =
    given.value("p") ?? (given.operands.length === 0 || given.has("t") ? "/tmp" : undefined);
  if (!/XXX/.test(template)) throw new Failure(`too few X's in template '${template}'`);
  const name = template.replace(/X{3,}(?!.*X{3})/, (all) =>
    Array.from(all, () => letters[machine.random.int(letters.length)]).join(""),
  );
  const path = folder === undefined ? name : `${folder}/${name}`;
  if (given.has("d")) files.makeFolder(machine.fs, pathOf(call, path), 0o700);
  else files.writeFile(machine.fs, pathOf(call, path), "", 0o600);
  out(call, `${path}\n`);
  return 0;
}

export function truncate(call: Call): number {
  const given = options(call, "s:c", { size: "s", "no-create": "c" });
  const size = given.value("s");
  if (size === undefined) throw new Failure("you must specify either '--size' or '--reference'");
  const { fs } = call.shell.machine;
  return each(
    call,
    given.operands,
    (name, problem) => `cannot open '${name}' for writing: ${problem}`,
    (path) => {
      const old = files.lookUp(fs, path)?.content ?? "";
      const sign = /^[-+]/.exec(size)?.[0];
      const count = countOf(size.replace(/^[-+]/, ""), "number");
      const length =
        sign === "+" ? old.length + count : sign === "-" ? Math.max(0, old.length - count) : count;
      if (length > 2 ** 23) throw new FileError("EFBIG");
      files.writeFile(fs, path, old.slice(0, length).padEnd(length, "\0"));
    },
  );
}
