/** JSON Schemas with their references and combinations resolved, as plain rules. */
import { isDeepStrictEqual } from "node:util";
import { isRecord } from "../text/tool.js";
import { ConstraintError } from "./automaton.js";
import type { Gap } from "./json-text.js";

/** A schema that is an object. */
export type Schema = Readonly<Record<string, unknown>>;

/** Keywords that say nothing about values. */
const ANNOTATIONS = new Set(
  "$schema $id $comment $anchor title description default examples deprecated readOnly writeOnly".split(
    " ",
  ),
);
/** Keywords that are kept to. */
const KEPT = new Set([
  ..."type enum const nullable anyOf oneOf properties required additionalProperties".split(" "),
  ..."propertyNames minProperties maxProperties items prefixItems additionalItems".split(" "),
  ..."minItems maxItems minLength maxLength pattern format minimum maximum".split(" "),
  ..."exclusiveMinimum exclusiveMaximum multipleOf".split(" "),
]);

/** Which of the tightest bounds holds where two schemas have one. */
const TIGHTER: Readonly<Record<string, (a: number, b: number) => number>> = {
  ...Object.fromEntries(
    ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"].map((name) => [
      name,
      Math.max,
    ]),
  ),
  ...Object.fromEntries(
    ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"].map((name) => [
      name,
      Math.min,
    ]),
  ),
};

/** Schemas that may be inside each other: they are read, and their texts joined, recursively. */
const MOST_DEEP = 100;

/** Where a schema is, and what it may refer to. */
export interface Place {
  readonly root: unknown;
  readonly path: string;
  /** How many schemas it is inside of. */
  readonly depth: number;
  /** The references that led here. */
  readonly via: readonly string[];
  /** How many schemas may still be read: references can multiply them. */
  readonly budget: { left: number };
  /** The white space between members. */
  readonly gap: Gap;
}

/** Refuses a schema, by its place. */
export function refuse({ path }: Place, message: string): never {
  throw new ConstraintError(`${path === "" ? "the schema" : path}: ${message}`);
}

/** A place inside. */
export function inside(place: Place, name: string | number): Place {
  if (place.depth === MOST_DEEP)
    refuse(place, `the schema is too deep: more than ${MOST_DEEP} schemas are inside each other`);
  return {
    ...place,
    path: place.path === "" ? String(name) : `${place.path}.${name}`,
    depth: place.depth + 1,
  };
}

/** A schema as one object of kept keywords, and the place in which it stands. */
export function resolved(
  schema: unknown,
  place: Place,
): { schema: Schema | boolean; place: Place } {
  if (typeof schema === "boolean") return { schema, place };
  if (!isRecord(schema)) refuse(place, `expected a JSON schema, got ${JSON.stringify(schema)}`);
  const { $ref, allOf, $defs: _, definitions: __, ...own } = schema;
  for (const name of Object.keys(own))
    if (ANNOTATIONS.has(name) || name.startsWith("x-")) delete own[name];
    else if (!KEPT.has(name))
      refuse(
        place,
        `"${name}" cannot be kept to while sampling; leave it out and check it afterwards`,
      );
  // It adds null to the types; where values are listed, null has to be among them.
  const { nullable, ...plain } = own;
  let all: Schema =
    nullable === true && plain.type !== undefined
      ? { ...plain, type: [...new Set([...list(plain.type), "null"])] }
      : plain;
  let at = place;
  const add = (other: unknown, where: Place): void => {
    const more = resolved(other, where);
    at = { ...at, via: [...new Set([...at.via, ...more.place.via])] };
    if (more.schema === false) refuse(where, "no value is allowed");
    if (more.schema !== true) all = merged(all, more.schema, where);
  };
  if ($ref !== undefined) add(...referred($ref, place));
  if (allOf !== undefined) {
    if (!Array.isArray(allOf)) refuse(place, '"allOf" should be a list of schemas');
    for (const [i, one] of allOf.entries()) add(one, inside(place, `allOf.${i}`));
  }
  return { schema: all, place: at };
}

function referred($ref: unknown, place: Place): [unknown, Place] {
  if (typeof $ref !== "string" || !$ref.startsWith("#"))
    refuse(place, `the reference ${JSON.stringify($ref)} leads outside of the schema`);
  if (place.via.includes($ref))
    refuse(place, `${$ref} refers to itself; values of any depth cannot be kept to`);
  let found: unknown = place.root;
  for (const part of $ref.split("/").slice(1)) {
    const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    const isThere = typeof found === "object" && found !== null && Object.hasOwn(found, name);
    found = isThere ? (found as Schema)[name] : undefined;
  }
  if (found === undefined) refuse(place, `there is no ${$ref}`);
  return [found, { ...place, via: [...place.via, $ref] }];
}

/** Both schemas in one; refuses what cannot be put together. */
export function merged(a: Schema, b: Schema, place: Place): Schema {
  for (const [closed, other] of [
    [a, b],
    [b, a],
  ] as const) {
    const { additionalProperties = true, properties = {} } = closed;
    const more = Object.keys(isRecord(other.properties) ? other.properties : {});
    const stray = more.find((name) => !Object.hasOwn(properties as object, name));
    if (additionalProperties !== true && stray !== undefined)
      refuse(place, `"additionalProperties" of one schema and "${stray}" of another contradict`);
    // Which items are meant depends on what is described beside them.
    const isMeant = closed.items !== undefined || closed.additionalItems !== undefined;
    if (isMeant && other.prefixItems !== undefined && closed.prefixItems === undefined)
      refuse(place, '"items" of one schema and "prefixItems" of another cannot be put together');
  }
  const all: Record<string, unknown> = { ...a };
  for (const [name, value] of Object.entries(b)) {
    const other = all[name];
    if (other === undefined || isDeepStrictEqual(other, value)) all[name] = value;
    else if (name in TIGHTER) all[name] = TIGHTER[name]!(Number(other), Number(value));
    else if (name === "required") all[name] = [...new Set([...list(other), ...list(value)])];
    else if (name === "properties" && isRecord(other) && isRecord(value))
      all[name] = {
        ...other,
        ...Object.fromEntries(
          Object.entries(value).map(([key, one]) => [
            key,
            Object.hasOwn(other, key) ? { allOf: [other[key], one] } : one,
          ]),
        ),
      };
    else if (name === "type") {
      const shared = list(other).filter(
        (one) => list(value).includes(one) || (one === "integer" && list(value).includes("number")),
      );
      const whole = list(value).includes("integer") && list(other).includes("number");
      all[name] = whole && !shared.includes("integer") ? [...shared, "integer"] : shared;
    } else if (name === "enum") all[name] = list(other).filter((one) => has(list(value), one));
    else refuse(place, `"${name}" is given twice and cannot be put together`);
  }
  return all;
}

/** One value or several as a list. */
export const list = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : [value];

const has = (values: readonly unknown[], one: unknown): boolean =>
  values.some((other) => isDeepStrictEqual(one, other));
