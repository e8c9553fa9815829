/** Where a command reads and writes: the terminal, or a test's substitute. */
import type { Readable } from "node:stream";
import { plainText } from "@pawl/core/plain-text.js";
import { withoutSecrets } from "@pawl/core/trust/secrets.js";
import picocolors from "picocolors";
import { type Colours, colouredText, createColours } from "./colours.js";

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
  readonly colors: Colours;
  /** Show no progress. */
  readonly quiet?: boolean;
}

/**
 * The streams of this process, with colours if the terminal supports them and NO_COLOR is not set.
 */
export function processIo(): Io {
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    colors: createColours(picocolors.isColorSupported && process.stdout.isTTY === true),
  };
}

/** Writes a line of results. */
export function print(io: Io, text = ""): void {
  write(io, `${text}\n`);
}

/** Writes results as they come, without a line's end. */
export function write(io: Io, text: string): void {
  io.stdout.write(colouredText(text));
}

/** Writes a line about the work; above the live view, if there is one. */
export function note(io: Io, text: string): void {
  const clean = withoutSecrets(text, io.env);
  const line = `${colouredText(clean)}\n`;
  const above = liveViews.get(io.stderr);
  if (above === undefined) io.stderr.write(line);
  else above(line);
}

/** Writes a warning. */
export function warn(io: Io, text: string): void {
  note(io, `${io.colors.yellow("warning:")} ${plainText(text)}`);
}

/** The live views of terminals: how to write above them. */
export const liveViews = new WeakMap<Io["stderr"], (text: string) => void>();
