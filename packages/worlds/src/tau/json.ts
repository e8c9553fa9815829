/**
 * JSON read and written as Python's `json` does it: `2` stays an int and `2.0` a float, keys keep
 * their order, and what is written is spaced and ASCII only.
 */
import { floatText, textRepr } from "@pawl/core/envs/python-text.js";
import { type Dict, isDict, isList, type Value } from "./value.js";

const TOKEN = /[\t\n\r ]*(?:([{}[\],:])|("(?:[^"\\]|\\.)*")|(-?\d[\d.eE+-]*)|(\w+))/y;
const NUMBER = /^-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const WORDS: Readonly<Record<string, Value>> = { true: true, false: false, null: null };

/** Parses a JSON text; what is none throws a `SyntaxError` that says where. */
export function parseJson(text: string): Value {
  let at = 0;
  const fail = (what: string): never => {
    throw new SyntaxError(`${what} at character ${at}`);
  };
  const next = (): RegExpExecArray => {
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text);
    if (token === null) return fail(at >= text.trimEnd().length ? "it ends too early" : "no JSON");
    at = TOKEN.lastIndex;
    return token;
  };
  const value = (token: RegExpExecArray): Value => {
    const [, mark, quoted, number, word] = token;
    if (quoted !== undefined) return JSON.parse(quoted) as string;
    if (number !== undefined) {
      const parts = NUMBER.exec(number) ?? fail(`${number} is no number`);
      return parts[1] === undefined && parts[2] === undefined ? BigInt(number) : Number(number);
    }
    if (word !== undefined)
      return Object.hasOwn(WORDS, word) ? WORDS[word]! : fail(`unexpected ${word}`);
    if (mark === "[") return list();
    return mark === "{" ? object() : fail(`unexpected ${mark}`);
  };
  const list = (): Value[] => {
    const items: Value[] = [];
    let token = next();
    if (token[1] === "]") return items;
    for (;;) {
      items.push(value(token));
      const mark = next()[1];
      if (mark === "]") return items;
      if (mark !== ",") fail("expected , or ]");
      token = next();
    }
  };
  const object = (): Dict => {
    const entries: Dict = new Map();
    let token = next();
    if (token[1] === "}") return entries;
    for (;;) {
      if (token[2] === undefined) fail("expected a key");
      const key = JSON.parse(token[2]!) as string;
      if (next()[1] !== ":") fail("expected :");
      entries.set(key, value(next()));
      const mark = next()[1];
      if (mark === "}") return entries;
      if (mark !== ",") fail("expected , or }");
      token = next();
    }
  };
  const parsed = value(next());
  if (text.slice(at).trim() !== "") fail("something follows the value");
  return parsed;
}

/** `json.dumps(value)`; `sort` sorts the keys at every level. */
export function jsonText(value: Value, sort = false): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number") return floatText(value);
  if (typeof value === "string") return asciiText(value);
  if (isList(value)) return `[${value.map((one) => jsonText(one, sort)).join(", ")}]`;
  const keys = sort ? sortedKeys(value) : [...value.keys()];
  const members = keys.map((key) => `${asciiText(key)}: ${jsonText(value.get(key)!, sort)}`);
  return `{${members.join(", ")}}`;
}

/** The keys sorted by code point. */
export function sortedKeys(value: ReadonlyMap<string, unknown>): readonly string[] {
  return [...value.keys()].sort(byCodePoint);
}

function byCodePoint(a: string, b: string): number {
  for (let at = 0; at < a.length && at < b.length; at++) {
    if (a[at] !== b[at]) return a.codePointAt(at)! - b.codePointAt(at)!;
  }
  return a.length - b.length;
}

/** A text as JSON, ASCII only. */
export function asciiText(text: string): string {
  return JSON.stringify(text).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The Python text of a value with dicts as sorted tuples of pairs and lists as tuples. */
export function tupleText(value: Value): string {
  if (isList(value)) return tuple(value.map(tupleText));
  if (isDict(value))
    return tuple(sortedKeys(value).map((key) => pair(key, tupleText(value.get(key)!))));
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "bigint") return String(value);
  return typeof value === "number" ? floatText(value) : textRepr(value);
}

/** A tuple of texts. */
function tuple(parts: readonly string[]): string {
  return parts.length === 1 ? `(${parts[0]},)` : `(${parts.join(", ")})`;
}

/** A pair of a key and the text of its value. */
export function pair(key: string, text: string): string {
  return `(${textRepr(key)}, ${text})`;
}

/** The value as plain JavaScript values, for those who need no exact numbers. */
export function plainValue(value: Value): unknown {
  if (isList(value)) return value.map(plainValue);
  if (isDict(value))
    return Object.fromEntries([...value].map(([key, one]) => [key, plainValue(one)]));
  return typeof value === "bigint" ? Number(value) : value;
}
