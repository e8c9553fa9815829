/**
 * The automata of JSON Schemas against a validator: no text that an automaton accepts may be
 * invalid, and valid values in the form that is kept to are accepted. PAWL_SCHEMAS names a folder
 * with `ajv`, `ajv-formats`, and the JSON-Schema-Test-Suite's `tests` (.ci/run says from where).
 */
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createRandom, type Random } from "../random.js";
import type { Constraint } from "../text/constraint.js";
import { isRecord } from "../text/tool.js";
import { ConstraintError } from "./automaton.js";
import { constraintAutomaton } from "./constraint.js";
import { byteDrawer, isAllowed } from "./constraint-testing.js";

const folder = process.env.PAWL_SCHEMAS;
const drafts = {
  "draft2020-12": "ajv/dist/2020",
  "draft2019-09": "ajv/dist/2019",
  draft7: "ajv",
} as const;
type Draft = keyof typeof drafts;
type Validator = (value: unknown) => boolean;

/** A validator of a schema; undefined if ajv does not take it, as where it knows no such draft. */
function validator(draft: Draft, schema: unknown): Validator | undefined {
  const load = createRequire(join(folder!, "package.json"));
  const ajv = new (load(drafts[draft]).default)({
    ...{ strict: false, logger: false },
    // JavaScript's own members are no members, and steps of 0.1 are counted in decimals.
    ...{ ownProperties: true, multipleOfPrecision: 9 },
  });
  load("ajv-formats").default(ajv);
  try {
    return ajv.compile(schema);
  } catch {
    return undefined;
  }
}

/** `true` alone is any object there. */
const constraintFor = (schema: unknown): Constraint => ({ json: schema === true ? {} : schema });

/** Why a schema is refused; undefined if it is kept to. */
function refusal(schema: unknown): string | undefined {
  try {
    constraintAutomaton(constraintFor(schema));
    return undefined;
  } catch (error) {
    if (error instanceof ConstraintError) return error.message;
    throw error;
  }
}

const meant = {
  object: ["properties", "required", "additionalProperties", "propertyNames", "maxProperties"],
  array: ["items", "prefixItems", "additionalItems", "minItems", "maxItems"],
  string: ["minLength", "maxLength", "pattern"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
};

/**
 * The schema of the form that is kept to: keywords mean a type, what is not described after what is
 * described is left out, and lists have all of their described items. Undefined for combinations
 * and formats, of which the form is not worked out here.
 */
function strictly(schema: unknown): unknown {
  if (!isRecord(schema)) return schema;
  if ("format" in schema || "allOf" in schema || "oneOf" in schema) return undefined;
  const { anyOf, $ref, $defs, definitions, ...own } = schema;
  const rules = Object.keys(own).filter((name) => !name.startsWith("$"));
  if ((anyOf !== undefined || $ref !== undefined) && rules.length > 0) return undefined;
  let isKnown = true;
  const inner = (one: unknown): unknown => {
    const found = strictly(one);
    if (found === undefined) isKnown = false;
    return found;
  };
  const each = (some: unknown): unknown =>
    isRecord(some)
      ? Object.fromEntries(Object.entries(some).map(([name, one]) => [name, inner(one)]))
      : Array.isArray(some)
        ? some.map(inner)
        : some;
  const types = Object.entries(meant).flatMap(([type, names]) =>
    names.some((name) => name in own) ? [type] : [],
  );
  const isTuple = Array.isArray(own.items) || "prefixItems" in own;
  const described = [own.prefixItems, own.items].find(Array.isArray)?.length ?? 0;
  const rest = Array.isArray(own.items) ? "additionalItems" : "items";
  const isFixed = isTuple && Number(own.minItems ?? 0) <= described;
  const strict = {
    ...(types.length > 0 && !("enum" in own) && !("const" in own) && { type: types }),
    ...("properties" in own && { additionalProperties: false }),
    ...(isFixed && { [rest]: false }),
    ...own,
    ...(isTuple && { minItems: Math.max(Number(own.minItems ?? 0), described) }),
    ...("properties" in own && { properties: each(own.properties) }),
    ...(isRecord(own.additionalProperties) && {
      additionalProperties: inner(own.additionalProperties),
    }),
    ...("items" in own && {
      items: Array.isArray(own.items) ? each(own.items) : inner(own.items),
    }),
    ...("prefixItems" in own && { prefixItems: each(own.prefixItems) }),
    ...(anyOf !== undefined && { anyOf: each(anyOf) }),
    ...($ref !== undefined && { $ref }),
    ...($defs !== undefined && { $defs: each($defs) }),
    ...(definitions !== undefined && { definitions: each(definitions) }),
  };
  return isKnown ? strict : undefined;
}

/** A value's texts: its members in every order. */
function* texts(value: unknown): Generator<string> {
  if (Array.isArray(value)) {
    for (const parts of products(value.map((one) => [...texts(one)]))) yield `[${parts.join(",")}]`;
  } else if (isRecord(value)) {
    for (const names of orders(Object.keys(value)))
      for (const parts of products(names.map((name) => [...texts(value[name])])))
        yield `{${parts.map((part, i) => `${JSON.stringify(names[i])}:${part}`).join(",")}}`;
  } else yield JSON.stringify(value);
}

function* orders<T>(items: readonly T[]): Generator<readonly T[]> {
  if (items.length === 0) yield [];
  for (const [at, first] of items.entries())
    for (const rest of orders(items.filter((_, i) => i !== at))) yield [first, ...rest];
}

function* products<T>(lists: readonly (readonly T[])[]): Generator<readonly T[]> {
  const [first, ...others] = lists;
  if (first === undefined) yield [];
  else for (const one of first) for (const rest of products(others)) yield [one, ...rest];
}

/** Whether a value is one of those that are written: its numbers are short, and it is not deep. */
function isWritten(value: unknown, levels = 4): boolean {
  if (typeof value === "number") return /^-?(?=[\d.]{1,15}$)\d+(\.\d{1,9})?$/.test(`${value}`);
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((one) => isWritten(one, levels - 1));
}

interface Counts {
  schemas: number;
  refused: number;
  drawn: number;
  /** Values that are valid and accepted, valid and in another form, invalid and not accepted. */
  accepted: number;
  otherwise: number;
  rejected: number;
}

/** Compares an automaton with a validator, on answers that it draws and on these values. */
function compare(
  draft: Draft,
  schema: unknown,
  values: readonly unknown[],
  draws: number,
  counts: Counts,
): void {
  counts.schemas++;
  if (refusal(schema) !== undefined) {
    counts.refused++;
    return;
  }
  const isValid = validator(draft, schema);
  if (isValid === undefined) return;
  const told = (what: string) => `${JSON.stringify(schema)}: ${what}`;
  const draw = byteDrawer(constraintFor(schema));
  for (let seed = 0; seed < draws; seed++) {
    const text = draw(seed);
    counts.drawn++;
    expect(isValid(JSON.parse(text)), told(`draws ${text}`)).toBe(true);
  }
  const form = strictly(schema);
  const isOfForm = form === undefined ? undefined : validator(draft, form);
  for (const value of values) {
    const isAccepted = [...texts(value)].some((text) => isAllowed(constraintFor(schema), text));
    if (!isValid(value)) {
      counts.rejected++;
      expect(isAccepted, told(`accepts ${JSON.stringify(value)}`)).toBe(false);
    } else if (isAccepted) counts.accepted++;
    else {
      counts.otherwise++;
      const isMissed = isWritten(value) && isOfForm?.(value) === true;
      expect(isMissed, told(`does not accept ${JSON.stringify(value)}`)).toBe(false);
    }
  }
}

const newCounts = (): Counts => ({
  ...{ schemas: 0, refused: 0, drawn: 0 },
  ...{ accepted: 0, otherwise: 0, rejected: 0 },
});

/** The suite's schemas with their values. */
function* suite(
  draft: Draft,
): Generator<{ readonly schema: unknown; readonly values: readonly unknown[] }> {
  const all = readdirSync(join(folder!, "tests", draft), { recursive: true, encoding: "utf8" });
  for (const name of all.filter((one) => one.endsWith(".json"))) {
    const groups = JSON.parse(readFileSync(join(folder!, "tests", draft, name), "utf8"));
    for (const { schema, tests } of groups)
      yield { schema, values: tests.map(({ data }: { data: unknown }) => data) };
  }
}

const names = ["a", "b", "hasOwnProperty", "__proto__", "ü"];
const scalars = [null, true, 0, -3, 2.5, 7, 140, "", "a", "ab-1", "üü\n", "2026-02-03"];

/** A schema at random, at most so many levels deep. */
function anySchema(random: Random, levels: number): unknown {
  const inner = (): unknown => anySchema(random, levels - 1);
  const maybe = (one: () => object): object => (random.next() < 0.4 ? one() : {});
  const some = <T>(of: readonly T[]): T[] => of.filter(() => random.next() < 0.4);
  const low = random.pick([-40, -2.5, 0, 1, 3]);
  const kinds = [
    () => ({ type: "string", ...maybe(() => ({ minLength: random.int(3) })) }),
    () => ({ type: "string", maxLength: 1 + random.int(4), ...maybe(() => ({ minLength: 1 })) }),
    () => ({ pattern: random.pick(["^[a-c]+$", "b", "^a?-\\d{1,2}$", "[^a]$", "^(ü|\\n)*$"]) }),
    () => ({ format: random.pick(["date", "time", "email", "uuid", "ipv4", "uri"]) }),
    () => ({ type: "integer", minimum: low, ...maybe(() => ({ maximum: low + random.int(200) })) }),
    () => ({ type: "number", exclusiveMinimum: low, maximum: low + 0.5 + random.int(20) }),
    () => ({ type: random.pick(["number", "integer"]), multipleOf: random.pick([0.5, 2, 7, 0.1]) }),
    () => ({ type: some(["null", "boolean", "integer", "string", "array", "object"]) }),
    () => ({ enum: some([...scalars, [1], { a: "b" }]) }),
    () => ({ const: random.pick([...scalars, { b: [], a: 1 }]) }),
    () => ({}),
  ];
  const nested = [
    () => ({
      ...{ type: "object", properties: Object.fromEntries(some(names).map((n) => [n, inner()])) },
      ...maybe(() => ({ required: some(names) })),
      ...maybe(() => ({ additionalProperties: random.pick([false, true, inner()]) })),
    }),
    () => ({
      ...{ type: "object", additionalProperties: inner() },
      ...maybe(() => ({ propertyNames: { maxLength: 2 } })),
      ...maybe(() => ({ maxProperties: 1 + random.int(3) })),
    }),
    () => ({
      ...{ type: "array", items: inner() },
      ...maybe(() => ({ minItems: random.int(3) })),
      ...maybe(() => ({ maxItems: random.int(4) })),
    }),
    () => ({
      type: "array",
      prefixItems: [inner(), inner()],
      ...maybe(() => ({ items: inner() })),
    }),
    () => ({ anyOf: [inner(), inner()], ...maybe(() => ({ type: ["string", "object", "null"] })) }),
    () => ({ oneOf: [inner(), inner()] }),
    () => ({ allOf: [inner(), inner()] }),
    () => ({ $defs: { one: inner() }, properties: { a: { $ref: "#/$defs/one" } } }),
    () => ({ type: "string", nullable: true, ...maybe(() => ({ enum: ["a", null] })) }),
  ];
  return random.pick(levels > 0 && random.next() < 0.7 ? nested : kinds)();
}

/** A value at random. */
function anyJson(random: Random, levels: number): unknown {
  if (levels === 0 || random.next() < 0.4) return random.pick(scalars);
  const inner = (): unknown => anyJson(random, levels - 1);
  if (random.next() < 0.4) return Array.from({ length: random.int(3) }, inner);
  const some = names.filter(() => random.next() < 0.4);
  return Object.fromEntries(some.map((name) => [name, inner()]));
}

describe.skipIf(folder === undefined)(
  "against a validator (skipped unless PAWL_SCHEMAS names a folder with one)",
  () => {
    it.each(Object.keys(drafts) as Draft[])("the suite's %s", (draft) => {
      const counts = newCounts();
      for (const { schema, values } of suite(draft)) compare(draft, schema, values, 20, counts);
      console.log(draft, JSON.stringify(counts));
      expect(counts.schemas - counts.refused).toBeGreaterThan(100);
      expect(counts.accepted).toBeGreaterThan(200);
    });

    it("schemas at random", () => {
      const counts = newCounts();
      const random = createRandom(46);
      for (let i = 0; i < 400; i++) {
        const schema = anySchema(random, 3);
        const values = Array.from({ length: 12 }, () => anyJson(random, 2));
        compare("draft2020-12", schema, values, 6, counts);
      }
      console.log("random", JSON.stringify(counts));
      expect(counts.accepted).toBeGreaterThan(200);
    });
  },
);
