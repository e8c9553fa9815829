/**
 * The lines in which py4j's gateway is spoken to: a request is a command, its parts and an end
 * line; an answer is one line. Values carry a letter for their type.
 */
import { EnvError } from "@pawl/core/envs/env.js";

/** An object that lives in the JVM. */
export interface JavaObject {
  readonly id: string;
}

/** What a method can be given. Numbers are Java's `int`. */
export type JavaArgument = string | number | boolean | null | JavaObject;

/** What a method can give back; `undefined` for `void`. */
export type JavaValue = string | number | boolean | null | undefined | JavaObject;

/** An answer: a value, or what was thrown. */
export type Answer = { readonly value: JavaValue } | { readonly thrown: JavaValue };

/** Calls a method of an object, or a static one of `z:` and the name of a class. */
export function callRequest(
  target: JavaObject | `z:${string}`,
  method: string,
  args: readonly JavaArgument[],
): string {
  return request("c", [typeof target === "string" ? target : target.id, method], args);
}

/** Makes an object of a class. */
export function constructRequest(className: string, args: readonly JavaArgument[]): string {
  return request("i", [className], args);
}

/** Lets the JVM forget an object. */
export function releaseRequest({ id }: JavaObject): string {
  return request("m", ["d", id], []);
}

function request(command: string, parts: readonly string[], args: readonly JavaArgument[]): string {
  return `${[command, ...parts, ...args.map(writeArgument), "e"].join("\n")}\n`;
}

function writeArgument(value: JavaArgument): string {
  if (value === null) return "n";
  if (typeof value === "object") return `r${value.id}`;
  if (typeof value === "boolean") return `b${value}`;
  if (typeof value === "number") return `i${value}`;
  return `s${escapeText(value)}`;
}

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r" };

function escapeText(text: string): string {
  return text.replace(/[\\\n\r]/g, (character) => ESCAPES[character]!);
}

function unescapeText(text: string): string {
  return text.replace(/\\(.)/g, (_, letter: string) =>
    letter === "n" ? "\n" : letter === "r" ? "\r" : letter,
  );
}

const SHOWN = 80;

/** Reads an answer; what is none is an `EnvError`. */
export function readAnswer(line: string): Answer {
  if (line.startsWith("!y")) return { value: readValue(line.slice(2), line) };
  if (line.startsWith("!x")) return { thrown: readValue(line.slice(2), line) };
  throw garbage(line);
}

function garbage(line: string): EnvError {
  return new EnvError(
    `scienceworld: expected an answer of py4j's gateway (!y or !x, a type, a value), got ${JSON.stringify(line.slice(0, SHOWN))}`,
  );
}

function readValue(text: string, line: string): JavaValue {
  const value = text.slice(1);
  switch (text[0]) {
    case undefined:
    case "v":
      return undefined;
    case "n":
      return null;
    case "s":
      return unescapeText(value);
    case "b":
      if (value === "true" || value === "false") return value === "true";
      break;
    case "i":
    case "L":
    case "d":
      if (/^-?(\d+(\.\d+)?(E-?\d+)?|Infinity)$|^NaN$/.test(value)) return Number(value);
      break;
    // References, lists, maps, sets, arrays and iterators: all are objects with an id.
    case "r":
    case "l":
    case "a":
    case "h":
    case "t":
    case "g":
      if (/^[a-zA-Z]\w*$/.test(value)) return { id: value };
      break;
  }
  throw garbage(line);
}
