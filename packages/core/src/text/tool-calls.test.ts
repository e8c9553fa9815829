import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { schemaCheck } from "../envs/tool-env.js";
import { promptStyle } from "./prompt.js";
import { callForms, callText, readCall, type Tool } from "./tool.js";
import { callFormOf, formatCall, parseCall, splitReasoning } from "./tool-calls.js";

const tools: readonly Tool[] = [
  { name: "guess", description: "Guess.", parameters: { type: "object" } },
];
const call = { tool: "guess", arguments: { number: 3, note: '</tool_call>"\n' } };

describe("a call", () => {
  it.each(callForms)("in the form %s is read as it was written", (form) => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (values) => {
        const written = { tool: "guess", arguments: JSON.parse(JSON.stringify(values)) };
        const text = formatCall(written, form);
        fc.pre(form !== "hermes" || text.split("tool_call>").length === 3);
        fc.pre(!text.includes("</think>"));
        const parsed = parseCall(`<think>so</think>${text}`, form, tools);
        expect(parsed).toEqual({ action: callText(written), wellFormed: true });
        expect(readCall(parsed.action)).toEqual(written);
      }),
    );
  });

  it.each([
    ["hermes", "I would guess 3.", /No tool was called/],
    ["hermes", '<tool_call>{"name":"guess"}', /does not end with/],
    ["hermes", "<tool_call>{name: guess}</tool_call>", /The call is not JSON/],
    [
      "hermes",
      '<tool_call>{"name":"guess"}</tool_call><tool_call>{"name":"guess"}</tool_call>',
      /More than one/,
    ],
    ["hermes", '<tool_call>{"name":"guess"}</tool_call> and so on', /Nothing may stand after/],
    ["json", '{"arguments":{}}', /A call has a "name"/],
    ["json", '{"name":"guess","arguments":[3]}', /should be a JSON object/],
    ["json", "[1]", /should be a JSON object/],
    ["llama", '{"name":"gues","parameters":{}}', /There is no tool gues\. The tools are: guess/],
    ["llama", 'Sure! {"name":"guess","parameters":{}}', /not JSON/],
  ] as const)("%s: %j says what is wrong", (form, response, problem) => {
    const parsed = parseCall(response, form, tools);
    expect(parsed.wellFormed).toBe(false);
    expect(parsed.problem).toMatch(problem);
  });

  it("may be fenced, without arguments, or after a python tag", () => {
    const none = { action: '{"tool":"guess","arguments":{}}', wellFormed: true };
    expect(parseCall('```json\n{"name": "guess"}\n```', "json", tools)).toEqual(none);
    expect(parseCall('<|python_tag|>{"name": "guess", "parameters": {}}', "llama", tools)).toEqual(
      none,
    );
  });

  it("has the form of the model's chat template, unless it is set", () => {
    expect(callFormOf("… <tool_call> …")).toBe("hermes");
    expect(callFormOf('Respond with {"name": …, "parameters": …}')).toBe("llama");
    expect(callFormOf("{{ message.content }}")).toBe("json");
    expect(callFormOf(undefined)).toBe("json");
    const written = (chatTemplate: string, toolCalls?: "llama") =>
      promptStyle({}, { style: "chat", ...(toolCalls && { toolCalls }) }, { chatTemplate }).format(
        callText(call),
      );
    expect(written("<tool_call>")).toBe(formatCall(call, "hermes"));
    expect(written("<tool_call>", "llama")).toBe(formatCall(call, "llama"));
  });
});

describe("a schema of arguments", () => {
  const check = schemaCheck({
    type: "object",
    properties: { number: { type: "integer", minimum: 1 }, why: { type: "string" } },
    required: ["number"],
    additionalProperties: false,
  });

  it("says what does not fit", () => {
    expect(check({ number: 3 })).toBeUndefined();
    expect(check({})).toMatch(/^number: /);
    expect(check({ number: 0 })).toMatch(/^number: /);
    expect(check({ number: "3" })).toMatch(/number/);
    expect(check({ number: 3, other: 1 })).toMatch(/other/);
  });

  it.each([
    ["nonsense", /a schema is an object/],
    [undefined, /a schema is an object/],
    [{ type: "string" }, /"type": "object"/],
    [{ type: "object", properties: 5 }, /"properties" should be an object of schemas/],
    [{ type: "object", required: "n" }, /"required" should be a list of names/],
    [{ type: "object", propertees: {} }, /keyword "propertees" is not supported\. Did you mean/],
    [{ type: "object", properties: { n: { type: "int" } } }, /int/],
    [{ type: "object", properties: { n: { minmum: 1 } } }, /properties\.n: the keyword "minmum"/],
    [{ type: "object", anyOf: {} }, /"anyOf" should be a list/],
    [{ type: "object", if: {} }, /keyword "if" is not supported/],
    [
      { type: "object", properties: { n: { type: "string", pattern: "[" } } },
      /regular expression/i,
    ],
  ])("like %j is refused", (schema, message) => {
    expect(() => schemaCheck(schema)).toThrow(message);
  });
});

it("an answer is parted from its reasoning, cut short or not; one without is all text", () => {
  expect(splitReasoning("<think>so</think> look")).toEqual({ reasoning: "so", text: "look" });
  expect(splitReasoning("so</think>look")).toEqual({ reasoning: "so", text: "look" });
  expect(splitReasoning("<think>so far")).toEqual({ reasoning: "so far", text: "" });
  expect(splitReasoning("look")).toEqual({ text: "look" });
});
