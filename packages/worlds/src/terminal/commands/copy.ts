/** Commands that copy, move and link. */
import * as files from "../shell/file-system.js";
import { FileError } from "../shell/inodes.js";
import type { Call } from "../shell/shell.js";
import { base, complain, Failure, options, out, pathOf } from "./call.js";

/** What a last operand means: a folder to put things in, or a name. */
function targets(
  call: Call,
  operands: readonly string[],
  folder: string | undefined,
  isPlain: boolean,
) {
  const names = folder === undefined ? operands.slice(0, -1) : operands;
  const last = folder ?? operands.at(-1);
  if (operands.length === 0) throw new Failure("missing file operand");
  if (last === undefined || names.length === 0)
    throw new Failure(`missing destination file operand after '${operands[0]}'`);
  const isFolder =
    !isPlain && files.lookUp(call.shell.machine.fs, pathOf(call, last))?.kind === "folder";
  if (names.length > 1 && !isFolder)
    throw new Failure(
      `target '${last}': ${files.lookUp(call.shell.machine.fs, pathOf(call, last)) ? "Not a directory" : "No such file or directory"}`,
    );
  return names.map((from) => ({
    from,
    to: isFolder ? `${last.replace(/\/+$/, "")}/${base(from)}` : last,
  }));
}

export function cp(call: Call): number {
  const given = options(call, "rRafpvnut:TLdPi", {
    recursive: "r",
    archive: "a",
    force: "f",
    verbose: "v",
    "no-clobber": "n",
    update: "u",
    "target-directory": "t",
    preserve: "p",
    parents: "i",
  });
  const { fs } = call.shell.machine;
  const isRecursive = given.has("r") || given.has("R") || given.has("a");
  let status = 0;
  const copy = (from: string, to: string, shown: string, target: string): void => {
    const stat = files.statFile(fs, from, !(isRecursive && !given.has("L")));
    const there = files.lookUp(fs, to);
    if (stat.kind === "folder") {
      if (!isRecursive) {
        complain(call, `-r not specified; omitting directory '${shown}'`);
        status = 1;
        return;
      }
      if (`${files.realPath(fs, to)}/`.startsWith(`${files.realPath(fs, from)}/`)) {
        complain(call, `cannot copy a directory, '${shown}', into itself, '${target}'`);
        status = 1;
        return;
      }
      const names = files.listFolder(fs, from);
      if (there === undefined) files.makeFolder(fs, to, stat.mode);
      else if (there.kind !== "folder") throw new FileError("ENOTDIR");
      for (const name of names)
        copy(`${from}/${name}`, `${to}/${name}`, `${shown}/${name}`, `${target}/${name}`);
      return;
    }
    if (there !== undefined && given.has("n")) return;
    if (there !== undefined && given.has("u") && there.modified >= stat.modified) return;
    if (there?.number === stat.number) {
      complain(call, `'${shown}' and '${target}' are the same file`);
      status = 1;
      return;
    }
    if (there?.kind === "folder") {
      complain(call, `cannot overwrite directory '${target}' with non-directory`);
      status = 1;
      return;
    }
    if (stat.kind === "link") {
      if (there !== undefined) files.removeFile(fs, to);
      files.makeLink(fs, stat.content, to);
    } else if (stat.program !== undefined) {
      if (there !== undefined) files.removeFile(fs, to);
      files.makeSpecial(fs, to, "file", stat.program);
    } else files.writeFile(fs, to, stat.kind === "device" ? "" : stat.content, stat.mode);
    if (given.has("p") || given.has("a")) files.setModified(fs, to, stat.modified);
    if (given.has("v")) out(call, `'${shown}' -> '${target}'\n`);
  };
  for (const { from, to } of targets(call, given.operands, given.value("t"), given.has("T")))
    try {
      if (files.lookUp(fs, pathOf(call, from), false) === undefined) throw new FileError("ENOENT");
      tryTo(
        () => copy(pathOf(call, from), pathOf(call, to), from, to),
        (problem) => `cannot create regular file '${to}': ${problem}`,
        call,
      );
    } catch (error) {
      if (error instanceof FileError) complain(call, `cannot stat '${from}': ${error.message}`);
      else if (!(error instanceof Told)) throw error;
      status = 1;
    }
  return status;
}

class Told {}

function tryTo(act: () => void, says: (problem: string) => string, call: Call): void {
  try {
    act();
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    complain(call, says(error.message));
    throw new Told();
  }
}

export function mv(call: Call): number {
  const given = options(call, "finvut:T", {
    force: "f",
    "no-clobber": "n",
    verbose: "v",
    "target-directory": "t",
  });
  const { fs } = call.shell.machine;
  let status = 0;
  const tell = (message: string): void => {
    complain(call, message);
    status = 1;
  };
  for (const { from, to } of targets(call, given.operands, given.value("t"), given.has("T"))) {
    const stat = files.lookUp(fs, pathOf(call, from), false);
    const there = files.lookUp(fs, pathOf(call, to), false);
    if (stat === undefined) tell(`cannot stat '${from}': No such file or directory`);
    else if (there !== undefined && given.has("n")) continue;
    else if (there?.number === stat.number) tell(`'${from}' and '${to}' are the same file`);
    else if (there?.kind === "folder" && stat.kind !== "folder")
      tell(`cannot overwrite directory '${to}' with non-directory`);
    else
      try {
        files.renameFile(fs, pathOf(call, from), pathOf(call, to));
        if (given.has("v")) out(call, `renamed '${from}' -> '${to}'\n`);
      } catch (error) {
        if (!(error instanceof FileError)) throw error;
        if (error.code === "EINVAL")
          tell(`cannot move '${from}' to a subdirectory of itself, '${to}'`);
        else tell(`cannot move '${from}' to '${to}': ${error.message}`);
      }
  }
  return status;
}

export function ln(call: Call): number {
  const given = options(call, "sfnvrT", {
    symbolic: "s",
    force: "f",
    verbose: "v",
    "no-dereference": "n",
  });
  const { fs } = call.shell.machine;
  const { operands } = given;
  const pairs =
    operands.length === 1
      ? [{ from: operands[0]!, to: base(operands[0]!) }]
      : targets(call, operands, undefined, given.has("T"));
  let status = 0;
  for (const { from, to } of pairs)
    try {
      const path = pathOf(call, to);
      if (given.has("f") && files.lookUp(fs, path, false) !== undefined) files.removeFile(fs, path);
      if (given.has("s")) files.makeLink(fs, from, path);
      else files.makeHardLink(fs, pathOf(call, from), path);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      const kind = given.has("s") ? "symbolic link" : "hard link";
      if (error.code === "ENOENT" && !given.has("s"))
        complain(call, `failed to access '${from}': ${error.message}`);
      else if (error.code === "EPERM")
        complain(call, `${from}: hard link not allowed for directory`);
      else complain(call, `failed to create ${kind} '${to}': ${error.message}`);
      status = 1;
    }
  return status;
}
