/** Where commands read from and write to. Data alone, so that a shell with open files can be copied. */
import { contentOf, setContent } from "./file-system.js";
import { type Machine, Stopped, spend } from "./machine.js";

export type Stream =
  | { readonly kind: "text"; readonly text: string; readonly isCut?: boolean; position: number }
  | Output
  | { readonly kind: "file"; readonly number: number; position: number; readonly append: boolean }
  | { readonly kind: "device"; readonly name: string };

/** What is written is kept, until it is too much; a pipe is then cut, for its reader to notice. */
interface Output {
  readonly kind: "output";
  text: string;
  readonly limit: number;
  readonly isPipe: boolean;
  isCut?: boolean;
}

/** Thrown where a pipe is written to that nobody empties any more. */
export class BrokenPipe {}

/** What a program that never stops gives at once. */
const ENDLESS = 64 * 1024;
/** What a pipe holds, and a command's output. */
export const PIPE_BYTES = 4 * 2 ** 20;

export const textStream = (text: string, isCut = false): Stream => ({
  kind: "text",
  text,
  isCut,
  position: 0,
});
export const pipeStream = (): Output => ({
  kind: "output",
  text: "",
  limit: PIPE_BYTES,
  isPipe: true,
});
export const nothing: Stream = { kind: "device", name: "null" };

/** The bytes that are left, or as many as asked for. */
export function read(machine: Machine, stream: Stream, count = Number.POSITIVE_INFINITY): string {
  if (stream.kind === "device") return readDevice(machine, stream.name, count);
  if (stream.kind === "output") return "";
  const text = stream.kind === "text" ? stream.text : contentOf(machine.fs, stream.number);
  const part = text.slice(stream.position, stream.position + count);
  stream.position += part.length;
  spend(machine, 1 + part.length / 256);
  return part;
}

/** The next line with its end, if there is one. */
export function readLine(machine: Machine, stream: Stream, end = "\n"): string | undefined {
  if (stream.kind === "device") {
    const text = readDevice(machine, stream.name, 1024);
    return text === "" ? undefined : text;
  }
  if (stream.kind === "output") return undefined;
  const text = stream.kind === "text" ? stream.text : contentOf(machine.fs, stream.number);
  if (stream.position >= text.length) return undefined;
  const at = text.indexOf(end, stream.position);
  const line = text.slice(stream.position, at < 0 ? text.length : at + 1);
  stream.position += line.length;
  spend(machine, 1);
  return line;
}

function readDevice(machine: Machine, name: string, count: number): string {
  const size = count === Number.POSITIVE_INFINITY ? ENDLESS : count;
  if (size > PIPE_BYTES) throw new Stopped("it wrote too much");
  spend(machine, 1 + size / 256);
  if (name === "zero" || name === "full") return "\0".repeat(size);
  if (name !== "random") return "";
  let text = "";
  for (let n = 0; n < size; n++) text += String.fromCharCode(machine.random.int(256));
  return text;
}

/** What came of text that was cut is cut, too, if its reader went to where that happened. */
export function passCut(input: Stream, output: Stream | undefined): void {
  if (input.kind !== "text" || !input.isCut || input.position < input.text.length) return;
  if (output?.kind !== "output" || !output.isPipe) throw new Stopped("it wrote too much");
  output.isCut = true;
}

/** Writes bytes. */
export function write(machine: Machine, stream: Stream, text: string): void {
  if (text === "") return;
  spend(machine, text.length / 256);
  if (stream.kind === "output") {
    stream.text += text;
    if (stream.text.length <= stream.limit) return;
    stream.text = stream.text.slice(0, stream.limit);
    if (!stream.isPipe) throw new Stopped("it wrote too much");
    stream.isCut = true;
    throw new BrokenPipe();
  }
  if (stream.kind !== "file") return;
  const there = contentOf(machine.fs, stream.number);
  const at = stream.append ? there.length : stream.position;
  const gap = at > there.length ? "\0".repeat(at - there.length) : "";
  const whole =
    at >= there.length
      ? there + gap + text
      : there.slice(0, at) + text + there.slice(at + text.length);
  setContent(machine.fs, stream.number, whole);
  stream.position = at + text.length;
}
