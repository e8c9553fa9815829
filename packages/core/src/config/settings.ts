/** The settings of a schema one by one, for flags, `--help`, completion and errors. */
import type { z } from "zod";

/** One value that a configuration file or a flag can set. */
export interface Setting {
  /** Its keys, such as `["env", "noise"]`. */
  readonly path: readonly string[];
  /** `--env.noise`, `--group-size`. */
  readonly flag: string;
  /** The value's placeholder: `NUMBER`, `ids|brands|off`, `TEXT`; empty for a switch. */
  readonly placeholder: string;
  readonly choices: readonly string[];
  readonly isSwitch: boolean;
  readonly description: string;
  readonly default: unknown;
  readonly required: boolean;
  readonly schema: z.core.$ZodType;
}

/**
 * All settings of an object schema, in the order of its definition.
 *
 * An object may have a default as a whole; `inherited` is the part of it that applies here.
 */
export function settingsOf(
  schema: z.core.$ZodType,
  path: readonly string[] = [],
  inherited?: unknown,
): Setting[] {
  const { inner, default: own = inherited } = unwrap(schema);
  const below = (key: string): unknown =>
    (own as Readonly<Record<string, unknown>> | undefined)?.[key];
  if (isObject(inner)) {
    return Object.entries(inner._zod.def.shape).flatMap(([key, value]) =>
      settingsOf(value, [...path, key], below(key)),
    );
  }
  const variants = isUnion(inner) ? inner._zod.def.options : [];
  if (variants.length > 0 && variants.every((variant) => isObject(unwrap(variant).inner))) {
    return mergeVariants(variants.flatMap((variant) => settingsOf(variant, path, own)));
  }
  return [settingOf(schema, path, own)];
}

/** Variants of a union share settings, such as the `name` that distinguishes them. */
function mergeVariants(all: readonly Setting[]): Setting[] {
  const merged = new Map<string, Setting>();
  for (const setting of all) {
    const known = merged.get(setting.flag);
    if (known === undefined) {
      merged.set(setting.flag, setting);
      continue;
    }
    const choices = [...new Set([...known.choices, ...setting.choices])];
    merged.set(setting.flag, {
      ...known,
      choices,
      placeholder: choices.join("|") || known.placeholder,
    });
  }
  return [...merged.values()];
}

function settingOf(
  schema: z.core.$ZodType,
  path: readonly string[],
  defaultValue: unknown,
): Setting {
  const { inner, optional, description } = unwrap(schema);
  const choices = choicesOf(inner);
  const isSwitch = inner._zod.def.type === "boolean";
  return {
    path,
    flag: flagOf(path),
    placeholder: isSwitch ? "" : choices.length > 0 ? choices.join("|") : placeholderOf(inner),
    choices,
    isSwitch,
    description: description ?? "",
    default: defaultValue,
    required: !optional && defaultValue === undefined,
    schema,
  };
}

/** `--env household` is short for `--env.name household`; so are an engine's address, and where to track. */
export const SHORT_KEY = /^(name|address|to)$/;

/** A dotted path or flag without a last key that may be left out. */
export const shortOf = (path: string): string => {
  const dot = path.lastIndexOf(".");
  return SHORT_KEY.test(path.slice(dot + 1)) && dot > 0 ? path.slice(0, dot) : path;
};

/** The flag of a path: `["env", "maxObjects"]` is `--env.max-objects`. */
export function flagOf(path: readonly string[]): string {
  return `--${path.map((key) => key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)).join(".")}`;
}

interface Unwrapped {
  readonly inner: z.core.$ZodType;
  readonly default: unknown;
  readonly optional: boolean;
  readonly description: string | undefined;
}

/** Unwraps defaults, optionality and preprocessing, keeping what they say. */
function unwrap(schema: z.core.$ZodType): Unwrapped {
  let inner = schema;
  let defaultValue: unknown;
  let optional = false;
  let description = (schema as z.ZodType).description;
  for (;;) {
    const def = inner._zod.def as z.core.$ZodTypeDef & {
      innerType?: z.core.$ZodType;
      out?: z.core.$ZodType;
      defaultValue?: unknown;
    };
    if (def.type === "default" || def.type === "prefault") defaultValue ??= def.defaultValue;
    else if (def.type === "optional") optional = true;
    const next = def.type === "pipe" ? def.out : def.innerType;
    if (next === undefined) return { inner, default: defaultValue, optional, description };
    inner = next;
    description ??= (inner as z.ZodType).description;
  }
}

function isObject(schema: z.core.$ZodType): schema is z.core.$ZodObject {
  return schema._zod.def.type === "object";
}

function isUnion(schema: z.core.$ZodType): schema is z.core.$ZodUnion {
  return schema._zod.def.type === "union";
}

function choicesOf(schema: z.core.$ZodType): string[] {
  const values = schema._zod.values;
  return values === undefined ? [] : [...values].map(String);
}

function placeholderOf(schema: z.core.$ZodType): string {
  if (isUnion(schema))
    return schema._zod.def.options
      .map((option) => choicesOf(option).join("|") || placeholderOf(option))
      .join("|");
  const names: Readonly<Record<string, string>> = {
    number: "NUMBER",
    int: "NUMBER",
    array: "A,B,…",
    record: "JSON",
  };
  return names[schema._zod.def.type] ?? "TEXT";
}

/**
 * Parses a flag's text into the type that its schema expects, or leaves it for the schema to
 * reject.
 */
export function coerce(text: string, schema: z.core.$ZodType): unknown {
  const { inner } = unwrap(schema);
  const def = inner._zod.def as z.core.$ZodTypeDef & { element?: z.core.$ZodType };
  switch (def.type) {
    case "number":
      return text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text);
    case "boolean":
      return text === "true" ? true : text === "false" ? false : text;
    case "array":
      return text === "" ? [] : text.split(",").map((item) => coerce(item.trim(), def.element!));
    case "record":
      return parseJson(text);
    case "union": {
      const values = (inner as z.core.$ZodUnion)._zod.def.options.map((option) =>
        coerce(text, option),
      );
      return values.find((value) => typeof value !== "string") ?? text;
    }
    default:
      return text;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: the schema will say what it expected.
    return text;
  }
}
