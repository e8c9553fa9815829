/** Where a piece of a game file came from, so that every complaint can name file, part and line. */
import { EnvError } from "../env.js";

/** A text inside a game file, for example its `pddl_domain`. */
export interface Source {
  readonly file: string;
  readonly part: string;
  readonly text: string;
}

/** The error that names file, part and line of something a game says wrongly. */
export function fault(source: Source, line: number, message: string): EnvError {
  return new EnvError(`${source.file}: ${source.part}, line ${line}: ${message}`);
}

/** The line (from 1) on which an offset lies. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1)) {
    line++;
  }
  return line;
}

/** A quoted excerpt of what was found, short enough for one line of an error. */
export function excerpt(text: string): string {
  const flat = text.replace(/\s+/g, " ");
  return `\`${flat.length > 60 ? `${flat.slice(0, 57)}...` : flat}\``;
}
