/** Where a command reads and writes: the terminal, or a test's substitute. */
import type { Readable } from "node:stream";
import picocolors from "picocolors";

/** The streams of a command and what it knows about the terminal. */
export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  /** For results. */
  readonly stdout: NodeJS.WritableStream & {
    readonly isTTY?: boolean;
    readonly columns?: number;
    readonly rows?: number;
  };
  /** For progress, warnings and errors, so that results can be piped. */
  readonly stderr: NodeJS.WritableStream & {
    readonly isTTY?: boolean;
    readonly columns?: number;
    readonly rows?: number;
  };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly colors: Colors;
}

/** Functions that colour a text, or leave it unchanged if colours are off. */
export type Colors = ReturnType<typeof picocolors.createColors>;

/**
 * The streams of this process, with colours if the terminal supports them and NO_COLOR is not set.
 */
export function processIo(): Io {
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    colors: picocolors.createColors(picocolors.isColorSupported && process.stdout.isTTY === true),
  };
}

/** Writes a line of results. */
export function print(io: Io, text = ""): void {
  io.stdout.write(`${text}\n`);
}

/** Writes a warning. */
export function warn(io: Io, text: string): void {
  io.stderr.write(`${io.colors.yellow("warning:")} ${text}\n`);
}
