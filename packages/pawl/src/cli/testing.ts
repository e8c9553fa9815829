/** A command line for tests: memory instead of the terminal. */
import { PassThrough, Readable } from "node:stream";
import { createColours } from "./colours.js";
import { main } from "./dispatch.js";
import type { Io } from "./io.js";

/** What a command wrote, and how it ended. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in this process: `input` is what is typed, `columns` the terminal's width. */
export async function runCli(
  args: readonly string[],
  options: { input?: string; env?: Record<string, string>; columns?: number } = {},
): Promise<Outcome> {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const io: Io = {
    stdin: Readable.from([options.input ?? ""]),
    stdout:
      options.columns === undefined ? stdout : Object.assign(stdout, { columns: options.columns }),
    stderr,
    env: options.env ?? {},
    colors: createColours(false),
  };
  const code = await main(args, io, new AbortController().signal);
  return { code, stdout: text(stdout), stderr: text(stderr) };
}

const text = (stream: PassThrough): string => (stream.read() as Buffer | null)?.toString() ?? "";
