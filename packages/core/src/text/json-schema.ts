/**
 * JSON Schemas of tools' arguments. zod checks values; what zod would pass over in silence, a
 * keyword it does not know or a `properties` that is no object, is refused here by name.
 */
import { z } from "zod";
import { withinTime } from "../processes/time-limit.js";
import { didYouMean } from "./nearest.js";
import { isRecord } from "./tool.js";

/** What each keyword should hold. */
const keywords: Readonly<
  Record<string, "schema" | "schemas" | "list of schemas" | "names" | "any">
> = {
  ...Object.fromEntries(
    // Annotations and plain values, which zod checks itself.
    [
      ..."$schema $id $ref $comment title description default examples deprecated readOnly writeOnly".split(
        " ",
      ),
      ..."type enum const format pattern minLength maxLength minimum maximum".split(" "),
      ..."exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems uniqueItems".split(" "),
      ..."minProperties maxProperties nullable contentEncoding contentMediaType".split(" "),
    ].map((name) => [name, "any" as const]),
  ),
  properties: "schemas",
  patternProperties: "schemas",
  $defs: "schemas",
  definitions: "schemas",
  additionalProperties: "schema",
  propertyNames: "schema",
  items: "schema",
  additionalItems: "schema",
  not: "schema",
  prefixItems: "list of schemas",
  anyOf: "list of schemas",
  oneOf: "list of schemas",
  allOf: "list of schemas",
  required: "names",
};

/** Checks values against a schema: undefined, or what is wrong. */
export type SchemaCheck = (value: unknown) => string | undefined;

/** Seconds that the expressions of a schema may take for one value. */
const PATTERN_SECONDS = 3;

/**
 * A schema for zod. Its regular expressions (`pattern`, `patternProperties`) may come from a server,
 * and meet what a model wrote, so a schema that has some checks within a time limit.
 */
export function zodSchema(schema: Readonly<Record<string, unknown>>): z.ZodType {
  const checked = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  if (!/"pattern(Properties)?":/.test(JSON.stringify(schema))) return checked;
  const { run } = checked._zod;
  checked._zod.run = (payload, context) =>
    withinTime(
      PATTERN_SECONDS * 1000,
      () => run(payload, context),
      () =>
        new Error(
          `a pattern of the tool's JSON Schema takes more than ${PATTERN_SECONDS} s for these arguments; it goes back again and again, and the tool needs another one`,
        ),
    );
  return checked;
}

/** Reads a schema of an object; what is no schema throws an `Error` that says where. */
export function schemaCheck(schema: unknown): SchemaCheck {
  checkSchema(schema, "");
  if (!isRecord(schema) || schema.type !== "object")
    throw new Error('expected the schema of an object, with "type": "object"');
  const checked = zodSchema(schema);
  return (value) => {
    const result = checked.safeParse(value);
    return result.success ? undefined : result.error.issues.map(issueText).join("; ");
  };
}

function issueText({ path, message }: z.core.$ZodIssue): string {
  return path.length === 0 ? message : `${path.join(".")}: ${message}`;
}

function checkSchema(schema: unknown, where: string): void {
  const no = (message: string): Error => new Error(where === "" ? message : `${where}: ${message}`);
  if (typeof schema === "boolean") return;
  if (!isRecord(schema)) throw no(`a schema is an object, not ${JSON.stringify(schema)}`);
  for (const [name, value] of Object.entries(schema)) {
    const path = where === "" ? name : `${where}.${name}`;
    const kind = keywords[name];
    if (name.startsWith("x-")) continue;
    if (kind === undefined)
      throw no(
        `the keyword "${name}" is not supported.${didYouMean(name, Object.keys(keywords))} Extensions start with x-.`,
      );
    if (kind === "schema") checkSchema(value, path);
    if (kind === "schemas") {
      if (!isRecord(value)) throw no(`"${name}" should be an object of schemas`);
      for (const [key, one] of Object.entries(value)) checkSchema(one, `${path}.${key}`);
    }
    if (kind === "list of schemas") {
      if (!Array.isArray(value)) throw no(`"${name}" should be a list of schemas`);
      for (const [at, one] of value.entries()) checkSchema(one, `${path}.${at}`);
    }
    if (kind === "names" && !isNames(value)) throw no(`"${name}" should be a list of names`);
  }
}

const isNames = (value: unknown): boolean =>
  Array.isArray(value) && value.every((one) => typeof one === "string");
