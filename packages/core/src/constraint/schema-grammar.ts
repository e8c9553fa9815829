/**
 * JSON Schemas as expressions: the texts of values that are valid. Not all of them, since members stand in
 * the order of the schema, numbers have no exponents and free values a bounded depth, but nothing
 * else. A keyword that is not kept to is refused by name.
 */
import { isDeepStrictEqual } from "node:util";
import { isRecord } from "../text/tool.js";
import { automatonOf, combined } from "./automaton.js";
import { accepted, choice, type Expression, literal, repeat } from "./expression.js";
import { type Bound, numberOf } from "./json-number.js";
import {
  anyCharacter,
  anyObject,
  anyValue,
  arrayOf,
  exactly,
  type Gap,
  type Member,
  objectOf,
  quoted,
} from "./json-text.js";
import { FORMATS, patternStrings, plainStrings } from "./pattern.js";
import { inside, list, merged, type Place, refuse, resolved, type Schema } from "./schema-rules.js";

/** Schemas that one may contain, each counted as often as it is referred to. */
const MOST_SCHEMAS = 20_000;

/** The values of a schema; one that has none is refused. */
export function schemaValues(schema: unknown, gap: Gap, path = ""): Expression {
  const place: Place = {
    root: schema,
    path,
    depth: 0,
    via: [],
    budget: { left: MOST_SCHEMAS },
    gap,
  };
  return valuesOf(schema, place) ?? refuse(place, "no value is allowed");
}

/** The values of a schema; undefined if there is none. */
function valuesOf(given: unknown, before: Place): Expression | undefined {
  if (before.budget.left-- === 0)
    refuse(before, `the schema is too large: it has more than ${MOST_SCHEMAS} parts`);
  const { schema, place } = resolved(given, before);
  if (typeof schema === "boolean") return schema ? anyValue(place.gap) : undefined;
  const { anyOf, oneOf, ...rest } = schema;
  if (anyOf !== undefined || oneOf !== undefined) {
    if (anyOf !== undefined && oneOf !== undefined)
      refuse(place, '"anyOf" and "oneOf" stand side by side; expected one of them');
    const options = anyOf ?? oneOf;
    if (!Array.isArray(options) || options.length === 0)
      refuse(place, `"${anyOf === undefined ? "oneOf" : "anyOf"}" should be a list of schemas`);
    const branches = options.map((one, i) => {
      const at = inside(place, `${anyOf === undefined ? "oneOf" : "anyOf"}.${i}`);
      const branch = resolved(one, at);
      const whole =
        typeof branch.schema === "boolean"
          ? branch.schema && rest
          : Object.keys(rest).length === 0
            ? branch.schema
            : merged(rest, branch.schema, at);
      return { schema: whole, place: branch.place };
    });
    if (oneOf !== undefined) requireApart(branches, place);
    return either(branches.map((branch) => valuesOf(branch.schema, branch.place)));
  }
  if ("const" in rest || "enum" in rest) return chosen(rest, place);
  const types = typesOf(rest, place);
  if (types === undefined) return anyValue(place.gap);
  return either(types.map((type) => valuesOfType(type, rest, place)));
}

function either(options: readonly (Expression | undefined)[]): Expression | undefined {
  const some = options.filter((one) => one !== undefined);
  return some.length === 0 ? undefined : choice(...some);
}

const TYPES = ["object", "array", "string", "integer", "number", "boolean", "null"] as const;
type Type = (typeof TYPES)[number];

const OBJECT_KEYWORDS: readonly string[] = [
  ..."properties required additionalProperties propertyNames".split(" "),
  ..."minProperties maxProperties".split(" "),
];
/** The keywords of each type; without `type`, they say which one is meant. */
const KEYWORDS: Readonly<Partial<Record<Type, readonly string[]>>> = {
  object: OBJECT_KEYWORDS,
  array: "items prefixItems additionalItems minItems maxItems".split(" "),
  string: "minLength maxLength pattern format".split(" "),
  number: "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf".split(" "),
};

/** The types that are allowed; undefined if nothing is said. */
function typesOf(schema: Schema, place: Place): readonly Type[] | undefined {
  if (schema.type === undefined) {
    const meant = TYPES.filter((type) => KEYWORDS[type]?.some((name) => name in schema));
    return meant.length === 0 ? undefined : meant;
  }
  return list(schema.type).map((type) => {
    if (!TYPES.includes(type as Type))
      refuse(place, `there is no type ${JSON.stringify(type)}; expected ${TYPES.join(", ")}`);
    return type as Type;
  });
}

const typeOf = (value: unknown): Type => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value as Type;
};

/** The values of `const` and `enum`. */
function chosen(schema: Schema, place: Place): Expression | undefined {
  const { type: _, const: constant, enum: listed, ...others } = schema;
  const [other] = Object.keys(others);
  if (other !== undefined)
    refuse(place, `"${other}" beside fixed values; leave out the values that it excludes`);
  if (listed !== undefined && !Array.isArray(listed)) refuse(place, '"enum" should be a list');
  const types = typesOf(schema, place);
  const values = (listed ?? [constant]) as readonly unknown[];
  const allowed = values.filter((value) => {
    const type = typeOf(value);
    const isOfType =
      types === undefined ||
      types.includes(type) ||
      (type === "integer" && types.includes("number"));
    return isOfType && (!("const" in schema) || isDeepStrictEqual(value, constant));
  });
  return either(allowed.map((value) => exactly(value, place.gap)));
}

function valuesOfType(type: Type, schema: Schema, place: Place): Expression | undefined {
  switch (type) {
    case "null":
      return literal("null");
    case "boolean":
      return choice(literal("true"), literal("false"));
    case "string":
      return stringValues(schema, place);
    case "integer":
    case "number":
      return numberValues(type === "integer", schema, place);
    case "array":
      return arrayValues(schema, place);
    case "object":
      return objectValues(schema, place);
  }
}

function numberAt(schema: Schema, name: string, place: Place): number | undefined {
  const value = schema[name];
  if (value === undefined || (typeof value === "number" && Number.isFinite(value))) return value;
  return refuse(place, `"${name}" should be a number, not ${JSON.stringify(value)}`);
}

function countAt(schema: Schema, name: string, place: Place): number | undefined {
  const value = numberAt(schema, name, place);
  if (value === undefined || (Number.isInteger(value) && value >= 0)) return value;
  return refuse(place, `"${name}" should be a whole number from 0, not ${value}`);
}

/** Longer bounds of texts and lists are refused before automata of their size are made. */
const LARGEST_COUNT = 4096;

function countsAt(
  schema: Schema,
  what: "Length" | "Items",
  place: Place,
): { readonly least: number; readonly most: number } {
  const least = countAt(schema, `min${what}`, place) ?? 0;
  const most = countAt(schema, `max${what}`, place) ?? Number.POSITIVE_INFINITY;
  for (const [name, count] of Object.entries({ [`min${what}`]: least, [`max${what}`]: most }))
    if (Number.isFinite(count) && count > LARGEST_COUNT)
      refuse(place, `"${name}" is ${count}, and at most ${LARGEST_COUNT} can be kept to`);
  return { least, most };
}

function numberValues(whole: boolean, schema: Schema, place: Place): Expression | undefined {
  const bound = (name: string, strict: string, side: "max" | "min"): Bound | undefined => {
    const [value, excluded] = [numberAt(schema, name, place), numberAt(schema, strict, place)];
    if (excluded === undefined) return value === undefined ? value : { value, exclusive: false };
    const isTighter = value === undefined || Math[side](value, excluded) === excluded;
    return isTighter ? { value: excluded, exclusive: true } : { value, exclusive: false };
  };
  const multipleOf = numberAt(schema, "multipleOf", place);
  if (multipleOf !== undefined && multipleOf <= 0)
    refuse(place, `"multipleOf" should be above 0, not ${multipleOf}`);
  return numberOf({
    whole,
    least: bound("minimum", "exclusiveMinimum", "max"),
    most: bound("maximum", "exclusiveMaximum", "min"),
    multipleOf,
  });
}

function stringValues(schema: Schema, place: Place): Expression | undefined {
  const { pattern, format } = schema;
  const { least, most } = countsAt(schema, "Length", place);
  if (least > most) return undefined;
  const patterns: string[] = [];
  if (pattern !== undefined) {
    if (typeof pattern !== "string") refuse(place, '"pattern" should be a text');
    patterns.push(pattern);
  }
  if (format !== undefined) {
    const known = FORMATS[String(format)];
    if (known === undefined)
      refuse(
        place,
        `the format ${JSON.stringify(format)} cannot be kept to; expected ${Object.keys(FORMATS).join(", ")}, or a pattern`,
      );
    patterns.push(known);
  }
  if (patterns.length === 0) return quoted(repeat(anyCharacter, least, most));
  const isBounded = least > 0 || Number.isFinite(most);
  const all = [
    ...patterns.map(patternStrings),
    ...(isBounded ? [automatonOf(repeat(anyCharacter, least, most))] : []),
  ];
  const both = all.reduce((a, b) => a && b && combined(a, b, "both"));
  return both && quoted(accepted(both));
}

function arrayValues(schema: Schema, place: Place): Expression | undefined {
  const { items, prefixItems, additionalItems } = schema;
  const { least, most } = countsAt(schema, "Items", place);
  // Draft 7 writes a list of items where later ones write prefixItems.
  const first = (prefixItems ?? (Array.isArray(items) ? items : [])) as readonly unknown[];
  if (!Array.isArray(first)) refuse(place, '"prefixItems" should be a list of schemas');
  const rest = Array.isArray(items) ? additionalItems : items;
  const fixed = first
    .slice(0, Math.min(first.length, most))
    .map((one, i) => valuesOf(one, inside(place, `prefixItems.${i}`)));
  if (least > most || fixed.some((one) => one === undefined)) return undefined;
  const entries = fixed.map((value) => ({ value: value!, required: true }));
  // What is not described after described items is left out, unless it is needed.
  const isClosed = first.length > 0 && rest === undefined && least <= fixed.length;
  const more =
    isClosed || rest === false ? undefined : valuesOf(rest ?? true, inside(place, "items"));
  const needed = Math.max(0, least - fixed.length);
  if (more === undefined) return needed > 0 ? undefined : arrayOf(entries, place.gap);
  const again = (required: boolean, count: number) =>
    Array.from({ length: count }, () => ({ value: more, required, last: true }));
  const open = Number.isFinite(most)
    ? again(false, most - fixed.length - needed)
    : [{ value: more, required: false, repeated: true }];
  return arrayOf([...entries, ...again(true, needed), ...open], place.gap);
}

function objectValues(schema: Schema, place: Place): Expression | undefined {
  const { properties = {}, required = [], additionalProperties, propertyNames } = schema;
  if (!isRecord(properties)) refuse(place, '"properties" should be an object of schemas');
  if (!Array.isArray(required) || required.some((one) => typeof one !== "string"))
    refuse(place, '"required" should be a list of names');
  if (propertyNames !== undefined && Object.keys(properties).length > 0)
    refuse(place, '"propertyNames" beside "properties" cannot be kept to; leave it out');
  const needed = new Set(required as readonly string[]);
  if (!OBJECT_KEYWORDS.some((name) => name in schema)) return anyObject(place.gap);
  const undeclared = additionalProperties ?? true;
  const declared = {
    ...Object.fromEntries([...needed].map((name) => [name, undeclared])),
    ...properties,
  };
  const members: Member[] = [];
  for (const [name, one] of Object.entries(declared)) {
    const value = valuesOf(one, inside(place, name));
    if (value === undefined && needed.has(name)) return undefined;
    if (value !== undefined)
      members.push({ name: literal(JSON.stringify(name)), value, required: needed.has(name) });
  }
  // What is not described after described members is left out, unless that is said.
  const rest = additionalProperties ?? !("properties" in schema);
  const others =
    rest === false ? undefined : othersOf(propertyNames, rest, Object.keys(declared), place);
  const least = countAt(schema, "minProperties", place) ?? 0;
  const most = countAt(schema, "maxProperties", place) ?? Number.POSITIVE_INFINITY;
  if (least > needed.size)
    refuse(place, `"minProperties" cannot be kept to; name what is "required"`);
  if (members.length > most) refuse(place, '"maxProperties" is below the number of "properties"');
  if (others === undefined) return objectOf(members, place.gap);
  const one = { ...others, required: false, last: true };
  const more = Number.isFinite(most)
    ? Array.from({ length: Math.min(most, LARGEST_COUNT) - members.length }, () => one)
    : [{ ...one, repeated: true }];
  return objectOf([...members, ...more], place.gap);
}

/** Members with other names than those that are declared. */
function othersOf(
  propertyNames: unknown,
  rest: unknown,
  declared: readonly string[],
  place: Place,
): Pick<Member, "name" | "value"> | undefined {
  const value = valuesOf(rest, inside(place, "additionalProperties"));
  const names = namesOf(propertyNames, inside(place, "propertyNames"));
  const taken = automatonOf(
    choice(...declared.map((name) => literal(JSON.stringify(name))), literal("")),
  )!;
  const left = names && combined(names, taken, "first only");
  return value && left && { name: accepted(left), value };
}

/** Names in one spelling each, with quotation marks. */
function namesOf(propertyNames: unknown, place: Place) {
  const { schema, place: at } = resolved(propertyNames ?? true, place);
  if (schema === false) return undefined;
  const plain = automatonOf(quoted(accepted(plainStrings(0, Number.POSITIVE_INFINITY)!)))!;
  if (schema === true) return plain;
  const names = valuesOf({ type: "string", ...schema }, at);
  const strings = names && automatonOf(names);
  return strings && combined(strings, plain, "both");
}

interface Branch {
  readonly schema: Schema | boolean;
  readonly place: Place;
}

/** Refuses branches of `oneOf` of which two may hold for one value. */
function requireApart(branches: readonly Branch[], place: Place): void {
  for (const [i, a] of branches.entries())
    for (const [j, b] of branches.slice(0, i).entries())
      if (!areApart(a, b, 0))
        refuse(
          place,
          `"oneOf": one value may fit both number ${j} and number ${i}; use "anyOf", or a member that is a different "const" in each`,
        );
}

function areApart(a: Branch, b: Branch, depth: number): boolean {
  if (a.schema === false || b.schema === false) return true;
  if (a.schema === true || b.schema === true || depth > 4) return false;
  const [left, right] = [kindsOf(a), kindsOf(b)];
  const isShared = (type: Type): boolean =>
    right.includes(type) ||
    (type === "integer" && right.includes("number")) ||
    (type === "number" && right.includes("integer"));
  if (!left.some(isShared)) return true;
  const [values, others] = [valuesIn(a.schema), valuesIn(b.schema)];
  if (values !== undefined && others !== undefined)
    return !values.some((one) => others.some((other) => isDeepStrictEqual(one, other)));
  const names = list(a.schema.required ?? []).filter((name) =>
    list(b.schema === true || b.schema === false ? [] : (b.schema.required ?? [])).includes(name),
  );
  const member = ({ schema, place }: Branch, name: string): Branch => {
    const { properties = {} } = schema as { properties?: Schema };
    const own = Object.hasOwn(properties, name) ? properties[name] : true;
    return resolved(own, inside(place, name));
  };
  const areObjects =
    left.every((type) => type === "object") && right.every((type) => type === "object");
  return (
    areObjects &&
    names.some((name) => areApart(member(a, String(name)), member(b, String(name)), depth + 1))
  );
}

/** The types that a schema allows. */
function kindsOf({ schema, place }: Branch): readonly Type[] {
  const own = schema as Schema;
  const values = valuesIn(own);
  if (own.type === undefined) return values?.map(typeOf) ?? TYPES;
  return typesOf(own, place)!;
}

const valuesIn = (schema: Schema): readonly unknown[] | undefined =>
  "const" in schema ? [schema.const] : (schema.enum as readonly unknown[] | undefined);
