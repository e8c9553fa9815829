import { expect, test } from "vitest";
import { z } from "zod";
import type { Constraint } from "../text/constraint.js";
import { callForms } from "../text/tool.js";
import { parseAnswer } from "../text/tool-calls.js";
import { canConstrain, constraintAutomaton } from "./constraint.js";
import { drawer, isAllowed } from "./constraint-testing.js";

const json = (schema: unknown): Constraint => ({ json: schema });
const object = (properties: object, required: readonly string[] = Object.keys(properties)) => ({
  ...{ type: "object", properties, required },
  additionalProperties: false,
});

/** Schemas with values that are not valid, by what they are about. zod says what is valid. */
const schemas: Readonly<Record<string, readonly [schema: unknown, ...invalid: unknown[]]>> = {
  type: [{ type: "string" }, 1, null, {}, []],
  types: [{ type: ["boolean", "null"] }, 0, "true"],
  "any object": [{ type: "object" }, [], "a"],
  "any value": [object({ a: {} }), { b: 1 }, {}],
  enum: [{ enum: ["a", "ü\n", 3, null] }, "b", 4],
  const: [object({ kind: { const: "x" } }), { kind: "y" }],
  properties: [
    object({ a: { type: "integer" }, b: { type: "string" }, c: { type: "boolean" } }, ["b"]),
    {},
    { a: 1 },
    { b: 1 },
    { b: "", d: 1 },
  ],
  "no properties": [object({}), { a: 1 }],
  additionalProperties: [
    {
      ...object({ id: { type: "integer" } }),
      additionalProperties: { type: "string", maxLength: 3 },
    },
    { id: 1, a: 2 },
    { id: 1, id2: "abcd" },
    { a: "b" },
  ],
  propertyNames: [
    {
      type: "object",
      propertyNames: { pattern: "^k[0-9]$" },
      additionalProperties: { type: "null" },
      maxProperties: 3,
    },
    { a: null },
    { k1: 1 },
    { k1: null, k2: null, k3: null, k4: null },
  ],
  items: [
    { type: "array", items: { type: "integer" }, minItems: 2, maxItems: 4 },
    [1],
    [1, 2, 3, 4, 5],
    [1, "a"],
  ],
  prefixItems: [
    { type: "array", prefixItems: [{ type: "integer" }, { const: "b" }], items: false },
    ["b", 1],
    [1, "b", 2],
  ],
  "string length": [{ type: "string", minLength: 2, maxLength: 5 }, "a", "abcdef", ""],
  pattern: [{ type: "string", pattern: "^[a-z]{2,4}(-[0-9]+)?$" }, "a", "ab-", "ABC"],
  "pattern anywhere": [{ type: "string", pattern: "a\\d", maxLength: 8 }, "a", "ba"],
  "pattern of escapes": [{ type: "string", pattern: '^["\\\\\\n\\u0001é]{1,4}$' }, "a", ""],
  date: [{ type: "string", format: "date" }, "2026-02-30", "2026-1-01"],
  "date-time": [{ type: "string", format: "date-time" }, "2026-02-20", "2026-02-20T25:00:00Z"],
  email: [z.toJSONSchema(z.email()), "a", "a@b", "a..b@example.com"],
  uuid: [{ type: "string", format: "uuid" }, "a"],
  integer: [{ type: "integer" }, 1.5, "1"],
  "integer range": [{ type: "integer", minimum: -12, exclusiveMaximum: 105 }, -13, 105, 1000, 2.5],
  "number range": [
    { type: "number", exclusiveMinimum: -0.25, maximum: 12.5 },
    -0.25,
    -1,
    12.51,
    13,
  ],
  "range above": [{ type: "number", minimum: 1234.5 }, 1234.4, 0, -2000],
  multipleOf: [{ type: "integer", multipleOf: 7, minimum: 1, maximum: 1000 }, 8, 0, 1001],
  decimals: [{ type: "number", multipleOf: 0.5, minimum: 0, maximum: 3 }, 0.25, 3.5],
  anyOf: [{ anyOf: [{ type: "integer" }, object({ a: { type: "null" } })] }, "a", { a: 1 }],
  oneOf: [
    {
      oneOf: [
        object({ kind: { const: "a" }, x: { type: "integer" } }),
        object({ kind: { const: "b" }, y: { type: "string" } }),
      ],
    },
    { kind: "a", y: "" },
    { kind: "c" },
  ],
  allOf: [
    {
      allOf: [
        { type: "object", properties: { a: { type: "integer", minimum: 3 } }, required: ["a"] },
        {
          type: "object",
          properties: { a: { type: "number", maximum: 5 }, b: { type: "string" } },
          required: ["b"],
        },
      ],
    },
    { a: 2, b: "" },
    { a: 6, b: "" },
    { a: 4 },
  ],
  $ref: [
    {
      ...object({ a: { $ref: "#/$defs/n" }, b: { $ref: "#/$defs/n" } }),
      $defs: { n: { type: "integer" } },
    },
    { a: 1, b: "x" },
  ],
  annotations: [{ type: "boolean", title: "a", description: "b", default: true, "x-note": 1 }, 1],
};

test.each(Object.keys(schemas))(
  "%s: what is sampled is valid, and what is invalid is refused",
  (name) => {
    const [schema, ...invalid] = schemas[name]!;
    const check = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
    const draw = drawer(json(schema));
    const seen = new Set<string>();
    for (let seed = 0; seed < 15; seed++) {
      const text = draw(seed);
      seen.add(text);
      const { error } = check.safeParse(JSON.parse(text));
      expect(error?.issues, text).toBeUndefined();
    }
    for (const value of invalid) {
      expect(check.safeParse(value).success, JSON.stringify(value)).toBe(false);
      expect(isAllowed(json(schema), JSON.stringify(value)), JSON.stringify(value)).toBe(false);
    }
    expect(seen.size).toBeGreaterThan(0);
  },
);

test("an enum may have thousands of values, most of whose bytes are the same", () => {
  const many = json({ enum: Array.from({ length: 20_000 }, (_, n) => `value-${n}`) });
  expect(isAllowed(many, '"value-19999"')).toBe(true);
  expect(isAllowed(many, '"value-20000"')).toBe(false);
}, 20_000);

test.each([
  [
    "many optional members",
    object(
      Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`f${n}`, { type: "boolean" }])),
      [],
    ),
  ],
  ["repeated repetitions", { type: "string", pattern: "^((a{1,50}){1,50}){1,50}$" }],
])(
  "%s are refused before they take minutes",
  (_, schema) => {
    expect(() => constraintAutomaton(json(schema))).toThrow(/too large: too many of its parts/);
  },
  60_000,
);

test("usual layouts of JSON are allowed, and white space without end is not", () => {
  const schema = json(object({ a: { type: "array", items: { type: "integer" } }, b: {} }));
  const value = { a: [1, 2], b: { c: "d" } };
  for (const indent of [0, 2, 4, "\t"])
    expect(isAllowed(schema, JSON.stringify(value, null, indent))).toBe(true);
  expect(isAllowed(schema, '{"a": [1, 2], "b": {"c": "d"}}')).toBe(true);
  expect(isAllowed(schema, '{"a":   [], "b": 1}')).toBe(false);
  expect(isAllowed({ json: true }, '{"a": {"b": [1, {"c": null}]}}')).toBe(true);
  expect(isAllowed({ json: true }, "[1]")).toBe(false);
});

test.each([
  [{ type: "array", uniqueItems: true }, /"uniqueItems" cannot be kept to/],
  [object({ a: { type: "integer", not: { const: 3 } } }), /^a: "not" cannot be kept to/],
  [{ type: "object", patternProperties: { a: {} } }, /patternProperties/],
  [{ type: "string", format: "phone" }, /format "phone".*date-time/],
  [{ type: "string", pattern: "(a)\\1" }, /the escape \\1/],
  [{ type: "string", pattern: "a(?<=b)" }, /a lookaround/],
  [{ $ref: "#" }, /# refers to itself/],
  [
    { $defs: { tree: object({ next: { $ref: "#/$defs/tree" } }) }, $ref: "#/$defs/tree" },
    /refers to itself; values of any depth/,
  ],
  [{ $ref: "#/$defs/none" }, /there is no #/],
  [{ $ref: "https://example.com/schema" }, /outside of the schema/],
  [{ oneOf: [{ type: "integer" }, { type: "number" }] }, /may fit both number 0 and number 1/],
  [{ type: "integer", minimum: 3, maximum: 2 }, /no value is allowed/],
  [{ type: "string", maxLength: 1e9 }, /"maxLength" is 1000000000/],
  [
    object({ a: { type: "string", maxLength: 4000 }, b: { type: "string", maxLength: 4000 } }),
    /too large/,
  ],
  [{ type: "strin" }, /no type "strin"/],
  [{ allOf: [object({ a: {} }), object({ b: {} })] }, /contradict/],
])("%j is refused", (schema, reason) => {
  expect(() => constraintAutomaton(json(schema))).toThrow(reason);
});

test("schemas that are large or deep are refused, with the place of what is too much", () => {
  const nested = (levels: number): object =>
    levels === 0 ? { type: "null" } : { type: "array", items: nested(levels - 1) };
  expect(isAllowed(json(nested(100)), `${"[".repeat(100)}null${"]".repeat(100)}`)).toBe(true);
  expect(() => constraintAutomaton(json(nested(101)))).toThrow(/items: the schema is too deep/);
  const names = Array.from({ length: 20_001 }, (_, i) => [`p${i}`, { type: "null" }]);
  const wide = object(Object.fromEntries(names));
  expect(() => constraintAutomaton(json(wide))).toThrow(/^p19999: the schema is too large/);
});

test("a hundred tools can be held to, and a thousand are refused", () => {
  const calls = (count: number): Constraint => ({
    calls: {
      form: "hermes",
      tools: Array.from({ length: count }, (_, i) => ({
        name: `tool_${i}`,
        arguments: object({ text: { type: "string" } }),
      })),
    },
  });
  const call = '<tool_call>{"name": "tool_99", "arguments": {"text": "a"}}</tool_call>';
  expect(isAllowed(calls(100), call)).toBe(true);
  expect(() => constraintAutomaton(calls(1000))).toThrow(/too large.*or fewer tools/);
});

test("schemas that multiply are refused at once", () => {
  const $defs = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [
      `d${i}`,
      i === 0
        ? { type: "null" }
        : {
            type: "array",
            prefixItems: [{ $ref: `#/$defs/d${i - 1}` }, { $ref: `#/$defs/d${i - 1}` }],
          },
    ]),
  );
  expect(canConstrain({ $defs, $ref: "#/$defs/d39" })).toBe(false);
});

const tools = [
  { name: "search", arguments: object({ query: { type: "string" } }) },
  { name: "searches", arguments: object({ count: { type: "integer" } }) },
  { name: "free", arguments: true },
];

test.each(callForms)("calls in the form %s are calls of the tools with valid arguments", (form) => {
  const draw = drawer({ calls: { form, tools } });
  for (let seed = 0; seed < 20; seed++) {
    const text = draw(seed);
    const { calls, problem } = parseAnswer(text, form);
    expect(problem).toBeUndefined();
    expect(calls.length).toBeGreaterThan(0);
    for (const call of calls) {
      const tool = tools.find(({ name }) => name === call.tool)!;
      if (tool.arguments !== true)
        expect(isAllowed(json(tool.arguments), JSON.stringify(call.arguments))).toBe(true);
    }
  }
});

test.each(callForms)("in text, every call in the form %s is right", (form) => {
  const constraint: Constraint = { text: true, calls: { form, tools: tools.slice(0, 1) } };
  const key = form === "llama" ? "parameters" : "arguments";
  const call = (values: object) => {
    const bare = JSON.stringify({ name: "search", [key]: values });
    return form === "hermes" ? `<tool_call>\n${bare}\n</tool_call>` : bare;
  };
  expect(isAllowed(constraint, "Just words.\nMore of them, <b>.")).toBe(true);
  expect(isAllowed(constraint, call({ query: "a" }))).toBe(true);
  expect(isAllowed(constraint, call({ query: 1 }))).toBe(false);
  expect(isAllowed(constraint, call({ query: "a" }).replace("search", "other"))).toBe(false);
  const draw = drawer(constraint);
  for (let seed = 0; seed < 20; seed++)
    expect(parseAnswer(draw(seed), form).problem).toBeUndefined();
});
