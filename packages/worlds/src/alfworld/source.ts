/** The origin of a piece of a game file, so that every error can name file, part and line. */
import { EnvError } from "@pawl/core/envs/env.js";
import { parseJson } from "../tau/value.js";

/** A text inside a game file, such as its `pddl_domain`. */
export interface Source {
  readonly file: string;
  readonly part: string;
  readonly text: string;
}

/** An error with file, part and line. */
export function fault(source: Source, line: number, message: string): EnvError {
  return new EnvError(`${source.file}: ${source.part}, line ${line}: ${message}`);
}

/** The error for a JSON text that does not parse; `offset` is where it starts in its source. */
export function jsonFault(source: Source, json: string, offset: number, cause: unknown): EnvError {
  let { message } = cause as Error;
  try {
    // The engine's own messages do not always say where.
    parseJson(json);
  } catch (error) {
    message = (error as Error).message;
  }
  const at = Number(/ at character (\d+)$/.exec(message)?.[1] ?? 0);
  const error = fault(
    source,
    lineAt(source.text, offset + at),
    `this is not valid JSON: ${message}`,
  );
  error.cause = cause;
  return error;
}

/** The line (from 1) of an offset. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1))
    line++;
  return line;
}

/** A quoted excerpt of what was found, short enough for one line of an error. */
export function excerpt(text: string): string {
  const flat = text.replace(/\s+/g, " ");
  return `\`${flat.length > 60 ? `${flat.slice(0, 57)}...` : flat}\``;
}
