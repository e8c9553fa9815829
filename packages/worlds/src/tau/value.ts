/**
 * Python's values, as far as the originals' tools see them: an int is a `bigint` and a float a
 * `number`, because `2` and `2.0` print, hash and compare differently there; a dict is a `Map`,
 * which keeps its order whatever the keys look like.
 */
import { floatText, textRepr } from "@pawl/core/envs/python-text.js";

// JSON read and written as Python's `json` does it: `2` stays an int and `2.0` a float, keys keep
// their order, and what is written is spaced and ASCII only.

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

/** A value of Python's. */
export type Value = null | boolean | bigint | number | string | List | Dict;
/** A list. */
export type List = Value[];
/** A dict, or a record with its fields in order. */
export type Dict = Map<string, Value>;

/** An exception of Python's, with the name of its class. */
export class PyError extends Error {
  override readonly name = "PyError";
  constructor(
    readonly type: string,
    message: string,
  ) {
    super(message);
  }
}

/** Raises an exception that the domain words itself. */
export function refuse(message: string): never {
  throw new PyError("ValueError", message);
}

export const isDict = (value: unknown): value is Dict => value instanceof Map;
export const isList = (value: unknown): value is List => Array.isArray(value);

/** The name of a value's type in Python's messages. */
export function typeName(value: Value): string {
  if (value === null) return "NoneType";
  if (isList(value)) return "list";
  if (isDict(value)) return "dict";
  return { boolean: "bool", bigint: "int", number: "float", string: "str" }[
    typeof value as "boolean" | "bigint" | "number" | "string"
  ];
}

/** `repr(value)`. */
export function repr(value: Value): string {
  if (value === null) return "None";
  if (isList(value)) return `[${value.map(repr).join(", ")}]`;
  if (isDict(value))
    return `{${[...value].map(([key, one]) => `${textRepr(key)}: ${repr(one)}`).join(", ")}}`;
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "bigint") return String(value);
  return typeof value === "number" ? floatText(value) : textRepr(value);
}

/** `str(value)`, as in an f-string. */
export function str(value: Value): string {
  return typeof value === "string" ? value : repr(value);
}

/** `bool(value)`. */
export function truthy(value: Value): boolean {
  if (value === null) return false;
  if (isList(value)) return value.length > 0;
  if (isDict(value)) return value.size > 0;
  return Boolean(value);
}

/** Python's `==`: numbers by value, booleans are 0 and 1. */
export function equal(a: Value, b: Value): boolean {
  if (isList(a))
    return isList(b) && a.length === b.length && a.every((one, at) => equal(one, b[at]!));
  if (isDict(a)) {
    if (!isDict(b) || a.size !== b.size) return false;
    return [...a].every(([key, one]) => b.has(key) && equal(one, b.get(key)!));
  }
  if (isNumber(a) && isNumber(b)) return plain(a) <= plain(b) && plain(a) >= plain(b);
  return a === b;
}

/** A number in Python's eyes, which booleans are too. */
export type Numeric = bigint | number | boolean;

export const isNumber = (value: Value): value is Numeric =>
  typeof value === "bigint" || typeof value === "number" || typeof value === "boolean";

const plain = (value: Numeric): bigint | number =>
  typeof value === "boolean" ? (value ? 1n : 0n) : value;

/** `a + b`, `a - b` or `a * b` of numbers: an int if both are ints. */
export function arithmetic(operator: "+" | "-" | "*", a: Value, b: Value): bigint | number {
  if (!isNumber(a) || !isNumber(b))
    throw new PyError(
      "TypeError",
      `unsupported operand type(s) for ${operator}: '${typeName(a)}' and '${typeName(b)}'`,
    );
  const [x, y] = [plain(a), plain(b)];
  if (typeof x === "bigint" && typeof y === "bigint")
    return operator === "+" ? x + y : operator === "-" ? x - y : x * y;
  const [p, q] = [Number(x), Number(y)];
  return operator === "+" ? p + q : operator === "-" ? p - q : p * q;
}

/** Python's `a < b` or `a <= b`: of numbers, or of texts. */
export function less(a: Value, b: Value, operator: "<" | "<=" = "<"): boolean {
  const both = (isNumber(a) && isNumber(b)) || (typeof a === "string" && typeof b === "string");
  if (!both)
    throw new PyError(
      "TypeError",
      `'${operator}' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`,
    );
  return operator === "<" ? a! < b! : a! <= b!;
}

/** `f"{value:.2f}"`: correctly rounded from the exact binary value, ties to even. */
export function fixed2(value: number): string {
  if (Object.is(value, -0)) return "-0.00";
  // Only odd eighths lie exactly between two hundredths.
  if (Math.abs((value * 8) % 2) !== 1) return value.toFixed(2);
  const hundredths = Math.floor(Math.abs(value) * 100);
  const even = hundredths % 2 === 0 ? hundredths : hundredths + 1;
  return `${value < 0 ? "-" : ""}${(even / 100).toFixed(2)}`;
}

/** `round(value, 2)`. */
export function round2(value: bigint | number): bigint | number {
  if (typeof value === "bigint" || !Number.isFinite(value) || Math.abs(value) >= 1e16) return value;
  return Number(fixed2(value));
}

/** `key in table` and `table[key]`: what cannot be a key raises, other keys are not found. */
export function lookUp<T>(table: { get(key: string): T | undefined }, key: Value): T | undefined {
  if (isList(key) || isDict(key))
    throw new PyError("TypeError", `unhashable type: '${typeName(key)}'`);
  return typeof key === "string" ? table.get(key) : undefined;
}

/** What iterating over a value gives: a text gives its characters. */
export function iterate(value: Value): readonly Value[] {
  if (isList(value)) return value;
  if (typeof value === "string") return [...value];
  if (isDict(value)) return [...value.keys()];
  throw new PyError("TypeError", `'${typeName(value)}' object is not iterable`);
}

/** `len(value)`. */
export function length(value: Value): number {
  if (isList(value)) return value.length;
  if (typeof value === "string") return [...value].length;
  if (isDict(value)) return value.size;
  throw new PyError("TypeError", `object of type '${typeName(value)}' has no len()`);
}

/** `value.method()` on something that has no such method. */
export function noAttribute(value: Value, attribute: string): PyError {
  return new PyError(
    "AttributeError",
    `'${typeName(value)}' object has no attribute '${attribute}'`,
  );
}

/** `value.lower()`. */
export function lower(value: Value): string {
  if (typeof value !== "string") throw noAttribute(value, "lower");
  return value.toLowerCase();
}

/** `list.count(one)` or, of a text, how often a part occurs in it. */
export function count(list: Value, one: Value): number {
  if (isList(list)) return list.filter((other) => equal(other, one)).length;
  if (typeof list === "string" && typeof one === "string") return list.split(one).length - 1;
  throw noAttribute(list, "count");
}

/** `sorted(value)`. */
export function sorted(value: Value): List {
  return [...iterate(value)].sort((a, b) => (less(a, b) ? -1 : less(b, a) ? 1 : 0));
}

/** `copy.deepcopy(value)`. */
export function deepCopy<T extends Value>(value: T): T {
  if (isList(value)) return value.map(deepCopy) as T;
  if (!isDict(value)) return value;
  const copy: Dict = new Map();
  for (const [key, one] of value as Dict) copy.set(key, deepCopy(one));
  return copy as T;
}

/** A field of a record, where the data's shape says what it is. */
export function field<T extends Value>(record: Dict, name: string): T {
  const value = record.get(name);
  if (value === undefined) throw new PyError("KeyError", textRepr(name));
  return value as T;
}

/** A record from its fields. */
export function dict(fields: Readonly<Record<string, Value>>): Dict {
  return new Map(Object.entries(fields));
}
