/** Where `awk` reads records from, and what it prints to files and commands. */
import * as files from "../shell/file-system.js";
import { matcherOf } from "../shell/regex.js";
import { read, readLine, type Stream, textStream, write } from "../shell/streams.js";
import { type Awk, textOf } from "./awk-values.js";
import { pathOf } from "./call.js";
import { print } from "./print.js";

/** The next record of a stream, as RS says. */
export function readFrom(state: Awk, stream: Stream): string | undefined {
  const { machine } = state.call.shell;
  const separator = textOf(state, state.variables.get("RS"));
  if (separator.length === 1) {
    const line = readLine(machine, stream, separator);
    return line?.endsWith(separator) ? line.slice(0, -1) : line;
  }
  if (stream.kind !== "text") {
    const whole = read(machine, stream);
    return whole === "" ? undefined : whole;
  }
  if (separator === "") {
    while (stream.text[stream.position] === "\n") stream.position += 1;
    if (stream.position >= stream.text.length) return undefined;
    const end = /\n\n+/g;
    end.lastIndex = stream.position;
    const found = end.exec(stream.text);
    const record = stream.text.slice(stream.position, found?.index).replace(/\n$/, "");
    stream.position = found === null ? stream.text.length : end.lastIndex;
    return record;
  }
  if (stream.position >= stream.text.length) return undefined;
  const found = matcherOf(separator, { extended: true }).exec(stream.text, stream.position);
  const record = stream.text
    .slice(stream.position, found?.index)
    .replace(/\n$/, found === null ? "" : "$&");
  stream.position =
    found === null ? stream.text.length : found.index + Math.max(1, found[0].length);
  return record;
}

/** Prints to a file or a command; commands run when they are closed. */
export function openOutput(state: Awk, operator: string, name: string, text: string): void {
  if (operator !== "|" && /^\/dev\/std(out|err)$|^-$/.test(name)) {
    print(state.call.shell, text, name.endsWith("err") ? 2 : 1);
    return;
  }
  const known = state.outputs.get(name);
  if (operator === "|") {
    if (known === undefined) state.outputs.set(name, { operator, text });
    else known.text += text;
    if ((known?.text.length ?? 0) > 2 ** 22) close(state, name);
    return;
  }
  const { machine } = state.call.shell;
  const number = files.openFile(
    machine.fs,
    pathOf(state.call, name),
    known === undefined && operator === ">",
  );
  if (known === undefined) state.outputs.set(name, { operator, text: "" });
  if (machine.fs.inodes.get(number)!.kind === "file")
    write(machine, { kind: "file", number, position: 0, append: true }, text);
}

/** Closes a file or a command, which runs now. */
export function close(state: Awk, name: string): number {
  const known = state.outputs.get(name);
  const wasRead = state.inputs.delete(name);
  if (known === undefined) return wasRead ? 0 : -1;
  state.outputs.delete(name);
  if (known.operator !== "|") return 0;
  const { shell } = state.call;
  const { streams } = shell;
  shell.streams = new Map(streams).set(0, textStream(known.text));
  try {
    return shell.runner.execute(shell, ["sh", "-c", name]);
  } finally {
    shell.streams = streams;
  }
}

export function closeAll(state: Awk): void {
  for (const name of [...state.outputs.keys()]) close(state, name);
}
