/** Redirections: which streams a command gets. */
import { expandText, expandWords } from "./expand.js";
import { absolute, contentOf, openFile, statFile } from "./file-system.js";
import { FileError } from "./inodes.js";
import { type Shell, ShellError } from "./shell.js";
import { nothing, type Stream, textStream } from "./streams.js";
import type { Redirect } from "./syntax.js";

/** The streams of a command with redirections. */
export function redirected(shell: Shell, redirects: readonly Redirect[]): Map<number, Stream> {
  const streams = new Map(shell.streams);
  for (const redirect of redirects) apply(shell, streams, redirect);
  return streams;
}

function apply(shell: Shell, streams: Map<number, Stream>, redirect: Redirect): void {
  const { operator, target } = redirect;
  const fd = redirect.fd ?? (operator.startsWith("<") ? 0 : 1);
  if (operator === "<<") {
    streams.set(fd, textStream(expandText(shell, target)));
    return;
  }
  if (operator === "<<<") {
    streams.set(fd, textStream(`${expandText(shell, target)}\n`));
    return;
  }
  const words = expandWords(shell, [target]);
  const name = words[0] ?? "";
  if (words.length !== 1) throw new ShellError(`${expandText(shell, target)}: ambiguous redirect`);
  const isBoth =
    operator.startsWith("&>") ||
    (operator === ">&" && redirect.fd === undefined && !/^(\d+|-)$/.test(name));
  if (operator.endsWith("&") && !isBoth) {
    if (name === "-") streams.delete(fd);
    else if (/^\d+$/.test(name)) {
      const source = streams.get(Number(name));
      if (source === undefined) throw new ShellError(`${name}: Bad file descriptor`);
      streams.set(fd, source);
    } else throw new ShellError(`${name}: ambiguous redirect`);
    return;
  }
  const isReading = operator === "<";
  const stream = open(shell, streams, name, operator.replace("&>", ">").replace(">&", ">"));
  streams.set(fd, stream);
  if (isBoth && !isReading) streams.set(2, stream);
}

function open(shell: Shell, streams: Map<number, Stream>, name: string, operator: string): Stream {
  const { fs } = shell.machine;
  try {
    const path = name === "" ? "" : absolute(shell.folder, name);
    if (operator === "<") {
      const there = statFile(fs, path);
      if (there.kind === "device") return device(streams, there.content);
      return textStream(there.content);
    }
    if (operator === ">" && shell.options.has("noclobber")) {
      let isThere = true;
      try {
        isThere = statFile(fs, path).kind === "file";
      } catch {
        isThere = false;
      }
      if (isThere) throw new ShellError(`${name}: cannot overwrite existing file`);
    }
    const isAppending = operator === ">>";
    const number = openFile(fs, path, operator.startsWith(">") && !isAppending);
    if (fs.inodes.get(number)?.kind === "device") return device(streams, contentOf(fs, number));
    return { kind: "file", number, position: 0, append: isAppending };
  } catch (error) {
    if (error instanceof FileError) throw new ShellError(`${name}: ${error.message}`);
    throw error;
  }
}

function device(streams: Map<number, Stream>, name: string): Stream {
  const standard = ["stdin", "stdout", "stderr"].indexOf(name);
  if (standard >= 0) return streams.get(standard) ?? nothing;
  return { kind: "device", name };
}
