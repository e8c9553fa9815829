/** Where a command reads and writes: the terminal, or what a test puts in its place. */
import type { Readable } from "node:stream";
import picocolors from "picocolors";

/** The streams of a command and what it knows of the terminal. */
export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  /** Results go here. */
  readonly stdout: NodeJS.WritableStream & {
    readonly isTTY?: boolean;
    readonly columns?: number;
    readonly rows?: number;
  };
  /** Progress, warnings and errors go here, so that results can be piped. */
  readonly stderr: NodeJS.WritableStream & {
    readonly isTTY?: boolean;
    readonly columns?: number;
    readonly rows?: number;
  };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly colors: Colors;
}

/** Functions that colour a text, or leave it where colours are off. */
export type Colors = ReturnType<typeof picocolors.createColors>;

/** The streams of this process; colours where the terminal has them and NO_COLOR is not set. */
export function processIo(): Io {
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    colors: picocolors.createColors(picocolors.isColorSupported && process.stdout.isTTY === true),
  };
}

/** Writes a line of result. */
export function print(io: Io, text = ""): void {
  io.stdout.write(`${text}\n`);
}

/** Writes a warning. */
export function warn(io: Io, text: string): void {
  io.stderr.write(`${io.colors.yellow("warning:")} ${text}\n`);
}
