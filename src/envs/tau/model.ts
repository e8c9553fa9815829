/**
 * Records with declared fields, as the originals build them from data files and from arguments:
 * defaults are filled in, an int in a float field becomes a float, and what does not fit is
 * reported in pydantic's words.
 */
import {
  type Dict,
  deepCopy,
  isDict,
  isList,
  PyError,
  repr,
  typeName,
  type Value,
} from "./value.js";

/** What a field may hold. */
export type Kind =
  | "str"
  | "int"
  | "float"
  | "bool"
  | "date"
  | "datetime"
  | { readonly optional: Kind }
  | { readonly list: Kind }
  | { readonly dict: Kind }
  | { readonly oneOf: readonly string[] }
  | { readonly union: readonly Model[] }
  | Model;

/** A class of records. */
export interface Model {
  readonly name: string;
  /** What becomes of keys that are not declared. */
  readonly extra: "drop" | "refuse";
  /** Name, kind and, unless the field is required, its default. */
  readonly fields: readonly (readonly [string, Kind, Value?])[];
}

/** Pydantic's version in the addresses of its messages: that of the recordings. */
const PYDANTIC = "2.10";

interface Problem {
  readonly place: string;
  readonly message: string;
  readonly type: string;
  readonly value: Value;
}

/** A record from the given values; values that do not fit raise a `ValidationError`. */
export function build(model: Model, values: Dict): Dict {
  const problems: Problem[] = [];
  const record = buildRecord(model, values, "", problems);
  if (problems.length === 0) return record;
  const lines = problems.map(
    ({ place, message, type, value }) =>
      `${place}\n  ${message} [type=${type}, input_value=${repr(value)}, input_type=${typeName(value)}]\n    For further information visit https://errors.pydantic.dev/${PYDANTIC}/v/${type}`,
  );
  const count = `${lines.length} validation error${lines.length === 1 ? "" : "s"}`;
  throw new PyError("ValidationError", `${count} for ${model.name}\n${lines.join("\n")}`);
}

function buildRecord(model: Model, values: Dict, place: string, problems: Problem[]): Dict {
  const record: Dict = new Map();
  const inside = (name: string): string => (place === "" ? name : `${place}.${name}`);
  for (const [name, kind, initial] of model.fields) {
    const value = values.get(name);
    if (value !== undefined) record.set(name, convert(kind, value, inside(name), problems));
    else if (initial !== undefined) record.set(name, deepCopy(initial));
    else
      problems.push({
        place: inside(name),
        message: "Field required",
        type: "missing",
        value: values,
      });
  }
  if (model.extra === "refuse") {
    for (const [name, value] of values) {
      if (model.fields.some(([known]) => known === name)) continue;
      problems.push({
        place: inside(name),
        message: "Extra inputs are not permitted",
        type: "extra_forbidden",
        value,
      });
    }
  }
  return record;
}

function convert(kind: Kind, value: Value, place: string, problems: Problem[]): Value {
  const problem = (message: string, type: string): Value => {
    problems.push({ place, message, type, value });
    return value;
  };
  if (typeof kind === "string") {
    const scalar = SCALARS[kind](value);
    return Array.isArray(scalar) ? problem(...(scalar as [string, string])) : (scalar as Value);
  }
  if ("optional" in kind)
    return value === null ? null : convert(kind.optional, value, place, problems);
  if ("oneOf" in kind) {
    const names = kind.oneOf;
    if (typeof value === "string" && names.includes(value)) return value;
    const quoted = names.map((one) => `'${one}'`);
    const choice =
      quoted.length > 1 ? `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}` : quoted[0];
    return problem(`Input should be ${choice}`, "enum");
  }
  if ("list" in kind) {
    if (!isList(value)) return problem("Input should be a valid list", "list_type");
    return value.map((one, at) => convert(kind.list, one, `${place}.${at}`, problems));
  }
  if (!isDict(value)) return problem("Input should be a valid dictionary", "dict_type");
  if ("dict" in kind) {
    const entries = [...value].map(
      ([key, one]) => [key, convert(kind.dict, one, `${place}.${key}`, problems)] as const,
    );
    return new Map(entries);
  }
  if ("union" in kind) {
    const fitting = kind.union.find((model) => fits(model, value));
    return fitting === undefined
      ? problem("Input fits none of the expected records", "union_tag_invalid")
      : buildRecord(fitting, value, place, problems);
  }
  return buildRecord(kind, value, place, problems);
}

/** Whether a value is a record of the model. */
function fits(model: Model, value: Dict): boolean {
  const problems: Problem[] = [];
  buildRecord(model, value, "", problems);
  return problems.length === 0;
}

type Converted = Value | readonly [message: string, type: string];

const TRUE_WORDS = ["1", "true", "t", "yes", "y", "on"];
const FALSE_WORDS = ["0", "false", "f", "no", "n", "off"];

const toBool = (value: Value): Converted => {
  if (typeof value === "boolean") return value;
  if (typeof value !== "string" && typeof value !== "bigint" && typeof value !== "number")
    return ["Input should be a valid boolean", "bool_type"];
  const word = String(value).toLowerCase();
  if (TRUE_WORDS.includes(word)) return true;
  if (FALSE_WORDS.includes(word)) return false;
  return ["Input should be a valid boolean, unable to interpret input", "bool_parsing"];
};

const toFloat = (value: Value): Converted => {
  if (typeof value === "number") return value;
  if (typeof value === "bigint" || typeof value === "boolean") return Number(value);
  if (typeof value !== "string") return ["Input should be a valid number", "float_type"];
  const text = value.trim();
  return text !== "" && Number.isFinite(Number(text))
    ? Number(text)
    : ["Input should be a valid number, unable to parse string as a number", "float_parsing"];
};

const toInt = (value: Value): Converted => {
  if (typeof value === "bigint") return value;
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (typeof value === "number")
    return Number.isInteger(value)
      ? BigInt(value)
      : ["Input should be a valid integer, got a number with a fractional part", "int_from_float"];
  if (typeof value !== "string") return ["Input should be a valid integer", "int_type"];
  return /^\s*[+-]?\d+(\.0+)?\s*$/.test(value)
    ? BigInt(value.trim().replace(/^\+|\.0+$/g, ""))
    : ["Input should be a valid integer, unable to parse string as an integer", "int_parsing"];
};

/** Converters of plain values: the value, or what is wrong with it. */
const SCALARS: Readonly<Record<Extract<Kind, string>, (value: Value) => Converted>> = {
  str: (value) =>
    typeof value === "string" ? value : ["Input should be a valid string", "string_type"],
  bool: toBool,
  float: toFloat,
  int: toInt,
  date: (value) =>
    typeof value === "string" && /^\d{4}-\d\d-\d\d$/.test(value)
      ? value
      : ["Input should be a valid date", "date_type"],
  datetime: (value) =>
    typeof value === "string" && /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d$/.test(value)
      ? value.replace("T", " ")
      : ["Input should be a valid datetime", "datetime_type"],
};
