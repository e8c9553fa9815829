import { schemaCheck } from "@pawl/core/envs/tool-env.js";
import { createTokenizer, TokenizerError } from "@pawl/core/text/tokenizer.js";
import { describe, expect, it } from "vitest";

const messages = [{ role: "user", content: "hello" }] as const;
const long = (text: string, doublings = 20) =>
  `{% set ns = namespace(s='${text}') %}{% for i in range(${doublings}) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}`;
const nested = "{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}";

/** A tokenizer of single letters, with parts of someone else's. */
function tokenizerOf(parts: Readonly<Record<string, unknown>>, chatTemplate?: string) {
  const vocab = Object.fromEntries([..."abx!"].map((letter, id) => [letter, id]));
  const model = { type: "BPE", vocab, merges: [], unk_token: null };
  const files = { tokenizer: JSON.stringify({ added_tokens: [], ...parts, model }) };
  return createTokenizer({ ...files, ...(chatTemplate !== undefined && { chatTemplate }) });
}

/** What a refusal says; anything but a refusal fails. */
function refusal(attack: () => unknown): string {
  try {
    attack();
  } catch (error) {
    expect(error).toBeInstanceOf(TokenizerError);
    return (error as Error).message;
  }
  throw new Error("it was not refused");
}

describe("a downloaded model's files cannot make Pawl hang or take all memory", () => {
  it.each([
    ["a long range", "{% for i in range(10**9) %}x{% endfor %}", /range/],
    ["a range of texts", "{% for i in range('1', '5') %}x{% endfor %}", /range/],
    ["a range with tiny steps", "{{ range(0, 1, 10**-9) }}", /range/],
    ["a text doubled in a loop", `${long("x", 60)}{{ ns.s }}`, /characters/],
    [
      "a list doubled in a loop",
      "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      /characters/,
    ],
    [
      "lists that share",
      `{% set ns = namespace(s=[1]) %}${nested}{{ ns.s | tojson }}`,
      /characters/,
    ],
    ["lists compared", `{% set ns = namespace(s=[1]) %}${nested}{{ ns.s == 'a' }}`, /characters/],
    [
      "a namespace that holds itself",
      "{% set ns = namespace(a=1) %}{% set ns.a = [ns, ns] %}{{ ns | tojson }}",
      /nesting/,
    ],
    [
      "a namespace that grows inside a list",
      "{% set ns = namespace(s='x') %}{% set l = [ns, ns, ns, ns] %}{% set l = [l, l, l, l] %}{% set l = [l, l, l, l] %}{% for i in range(20) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ l | tojson }}",
      /characters/,
    ],
    ["a macro that calls itself", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", /depth/],
    [
      "a macro that calls itself twice",
      "{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(50) }}",
      /steps|seconds/,
    ],
    [
      "loops in loops",
      "{% for i in range(100000) %}{% for j in [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20] %}{% endfor %}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{{ i }}{% endfor %}",
      /steps|seconds/,
    ],
    ["an indentation", "{{ 'a\\nb' | indent(10**9) }}", /indent/],
    ["an indented block", "{% filter indent(10**9) %}a\nb{% endfilter %}", /indent/],
    ["indented JSON", "{{ [[[1]]] | tojson(indent=10**8) }}", /tojson/],
    ["a long separator", `${long("x")}{{ range(100000) | join(ns.s) }}`, /join/],
    ["a replacement", `${long("x")}{{ ns.s.replace('x', ns.s) }}`, /method/],
    [
      "a method by a made-up name",
      `${long("x")}{% set r = ns.s['re' ~ 'place'] %}{{ r('', ns.s) }}`,
      /method/,
    ],
    ["the filter of that name", `${long("x")}{{ ns.s | replace('', ns.s) }}`, /replace/],
    [
      "a quadratic search",
      `${long("a")}{% set n = ns.s[:400000] ~ 'b' ~ ns.s[:400000] %}{{ n in ns.s }}`,
      /product/,
    ],
    [
      "a quadratic split",
      `${long("a")}{% set n = ns.s[:400000] ~ 'b' ~ ns.s[:400000] %}{{ ns.s.split(n) }}`,
      /product/,
    ],
    [
      "a long path to sort by",
      `${long("ab.", 18)}{{ range(50000) | sort(attribute=ns.s) }}`,
      /sort/,
    ],
    [
      "many long texts",
      `${long("ab")}{% for i in range(100000) %}{% set x = ns.s.upper() %}{% endfor %}`,
      /made|seconds/,
    ],
    ["a long output", `${long("ab")}{% for i in range(9) %}{{ ns.s }}{% endfor %}`, /characters/],
  ])("a chat template with %s", (_, template, message) => {
    const tokenizer = tokenizerOf({}, template);
    expect(refusal(() => tokenizer.chat(messages))).toMatch(message);
  });

  it.each([
    ["a million characters", "x".repeat(1e6), /source/],
    ["blanks that its parser goes over again and again", `${" ".repeat(250_000)}x`, /seconds/],
    ["brackets inside brackets", `{{ ${"(".repeat(60_000)}1${")".repeat(60_000)} }}`, /parsed/],
  ])("a chat template of %s", (_, template, message) => {
    expect(refusal(() => tokenizerOf({}, template))).toMatch(message);
  });

  const split = (Regex: string) => ({
    pre_tokenizer: { type: "Split", pattern: { Regex }, behavior: "Isolated", invert: false },
  });
  it.each([
    ["a pre-tokenizer with nested repetition", split("(a+)+!")],
    [
      "a normalizer of many repetitions",
      {
        normalizer: { type: "Replace", pattern: { Regex: "a*a*a*a*a*a*a*!" }, content: "" },
      },
    ],
  ])("%s", (_, parts) => {
    const tokenizer = tokenizerOf(parts);
    expect(tokenizer.encode("ab")).toEqual([0, 1]);
    expect(() => tokenizer.encode(`${"a".repeat(2000)}b`)).toThrow(TokenizerError);
  });

  it("an MCP server's pattern for the arguments of a tool", () => {
    const parameters = { q: { type: "string", pattern: "^(a+)+$" } };
    const check = schemaCheck({ type: "object", properties: parameters });
    expect(check({ q: "aaa" })).toBeUndefined();
    expect(check({ q: "aab" })).toMatch(/pattern/);
    expect(() => check({ q: `${"a".repeat(60)}b` })).toThrow(/pattern of the tool's JSON Schema/);
  });
});
