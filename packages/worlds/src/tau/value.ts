/**
 * Python's values, as far as the originals' tools see them: an int is a `bigint` and a float a
 * `number`, because `2` and `2.0` print, hash and compare differently there; a dict is a `Map`,
 * which keeps its order whatever the keys look like.
 */
import { floatText, textRepr } from "@pawl/core/envs/python-text.js";

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
