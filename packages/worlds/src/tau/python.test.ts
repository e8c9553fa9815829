/** Python's numbers, texts and messages, on which hashes and answers depend. */
import { describe, expect, it } from "vitest";
import { calculate } from "./calculate.js";
import { parseToml } from "./files.js";
import { build, type Model } from "./model.js";
import {
  asciiText,
  dict,
  equal,
  fixed2,
  jsonText,
  PyError,
  parseJson,
  repr,
  round2,
  tupleText,
  type Value,
} from "./value.js";
import { bind } from "./world.js";

/** The message of what is raised. */
function raised(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof PyError) return `${error.type}: ${error.message}`;
    throw error;
  }
  return "nothing";
}

describe("JSON", () => {
  it("keeps ints and floats apart, and keys in their order", () => {
    const text = '{"b": 2, "10": 2.0, "9": [1e3, -0.0, 12345678901234567890, null, true]}';
    expect(jsonText(parseJson(text))).toBe(
      '{"b": 2, "10": 2.0, "9": [1000.0, -0.0, 12345678901234567890, null, true]}',
    );
  });

  it("sorts keys by code point and writes ASCII only", () => {
    expect(jsonText(parseJson('{"é": 1, "Z": "😀\\u007f", "a": {}}'), true)).toBe(
      '{"Z": "\\ud83d\\ude00\\u007f", "a": {}, "\\u00e9": 1}',
    );
    expect(asciiText('a"b\\c\n')).toBe('"a\\"b\\\\c\\n"');
  });

  it.each(["", "{", '{"a" 1}', "[1,]", "01", "1.", "nul", '{"a": 1} x', "{1: 2}", '"a'])(
    "refuses %j",
    (text) => {
      expect(() => parseJson(text)).toThrow(SyntaxError);
    },
  );

  it("writes nested tuples as Python does", () => {
    const value = parseJson('{"b": ["it\'s", "say \\"hi\\""], "a": [1.0], "c": {}}');
    expect(tupleText(value)).toBe(`(('a', (1.0,)), ('b', ("it's", 'say "hi"')), ('c', ()))`);
  });
});

describe("numbers", () => {
  it.each([
    [2.675, "2.67"],
    [0.125, "0.12"],
    [0.375, "0.38"],
    [-0.125, "-0.12"],
    [1.005, "1.00"],
    [-0.001, "-0.00"],
    [-0, "-0.00"],
    [1234.5, "1234.50"],
  ])("%d is %s with two digits", (value, text) => {
    expect(fixed2(value)).toBe(text);
  });

  it("rounds ints to themselves, and compares by value", () => {
    expect(round2(3n)).toBe(3n);
    expect(equal(2n, 2)).toBe(true);
    expect(equal(true, 1n)).toBe(true);
    expect(equal([1n, "a"], [1, "a"])).toBe(true);
    expect(equal("2", 2n)).toBe(false);
  });

  it.each([
    ["2*(3+4)", "14.0"],
    ["7//2 + 2**10", "1027.0"],
    ["-7//2", "-4.0"],
    ["2**-1", "0.5"],
    ["--3", "3.0"],
    ["-2**2", "-4.0"],
    [`${"-".repeat(100_001)}3`, "-3.0"],
    ["10**16", "1e+16"],
    ["  .5", "0.5"],
  ])("calculates %s", (expression, result) => {
    expect(calculate(expression)).toBe(result);
  });

  it.each([
    ["1/0", "ZeroDivisionError: division by zero"],
    ["", "SyntaxError: invalid syntax (<string>, line 0)"],
    ["(1", "SyntaxError: '(' was never closed (<string>, line 1)"],
    ["1)", "SyntaxError: unmatched ')' (<string>, line 1)"],
    [
      "012",
      "SyntaxError: leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers (<string>, line 1)",
    ],
    ["(2)(3)", "TypeError: 'int' object is not callable"],
    ["9**9**9", "OverflowError: int too large to convert to float"],
    ["(".repeat(300), "SyntaxError: too many nested parentheses (<string>, line 1)"],
  ])("raises for %s as Python does", (expression, message) => {
    expect(raised(() => calculate(expression))).toBe(message);
  });
});

describe("arguments", () => {
  const given = (json: string) => parseJson(json) as Map<string, Value>;

  it("are put in order, with defaults", () => {
    expect(bind("f", ["a", "b=12", "c=null"], given('{"a": "x"}'))).toEqual(["x", 12n, null]);
  });

  it("that do not fit are reported in Python's words, unknown ones first", () => {
    expect(raised(() => bind("T.f", ["a"], given('{"b": 1}')))).toBe(
      "TypeError: T.f() got an unexpected keyword argument 'b'",
    );
    expect(raised(() => bind("T.f", ["a", "b", "c"], given("{}")))).toBe(
      "TypeError: T.f() missing 3 required positional arguments: 'a', 'b', and 'c'",
    );
  });
});

describe("records", () => {
  const model: Model = {
    name: "Thing",
    extra: "refuse",
    fields: [
      ["name", "str"],
      ["price", "float", 1],
      ["on", "bool", false],
      ["size", { oneOf: ["s", "l"] }, "s"],
    ],
  };

  it("get their defaults and become floats", () => {
    expect(jsonText(build(model, dict({ name: "a", price: 2n, on: "yes" })))).toBe(
      '{"name": "a", "price": 2.0, "on": true, "size": "s"}',
    );
  });

  it("that do not fit raise pydantic's message", () => {
    const message = raised(() => build(model, dict({ name: 5n, size: "m", foo: null })));
    expect(message.split("\n").filter((line) => !line.includes("https:"))).toEqual([
      "ValidationError: 3 validation errors for Thing",
      "name",
      "  Input should be a valid string [type=string_type, input_value=5, input_type=int]",
      "size",
      "  Input should be 's' or 'l' [type=enum, input_value='m', input_type=str]",
      "foo",
      "  Extra inputs are not permitted [type=extra_forbidden, input_value=None, input_type=NoneType]",
    ]);
  });
});

describe("TOML", () => {
  it("has tables and arrays of tables", () => {
    const text = '[a]\nx = 1.0\n\n[[b]]\nn = "p"\n[[b]]\nn = "q"\n[b.c]\nl = ["1", "2"]\n';
    expect(repr(parseToml(text))).toBe(
      "{'a': {'x': 1.0}, 'b': [{'n': 'p'}, {'n': 'q', 'c': {'l': ['1', '2']}}]}",
    );
  });

  it.each(["x = 2025-01-01", "x", "[a]\n[[a]]", "x = 1\nx = 2"])(
    "refuses %j with the line",
    (text) => {
      expect(() => parseToml(text)).toThrow(/line \d/);
    },
  );
});
