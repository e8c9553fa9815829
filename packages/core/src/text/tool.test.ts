import { expect, it } from "vitest";
import { callText, readCall, writtenMember } from "./tool.js";
import { parseCall } from "./tool-calls.js";

it.each([
  ['{"tool":"t","arguments":{"a":2.0}}', '{"a":2.0}'],
  ['{"arguments" : { "a" : [1e3, "x, }"] } , "tool": "t"}', '{"a":[1e3,"x, }"]}'],
  ['{"tool":"t","arguments":{"a":12345678901234567890}}', '{"a":12345678901234567890}'],
  ['{"tool":"arguments","arguments":{"a":-0.0}}', '{"a":-0.0}'],
])("keeps numbers that parsing would change: %s", (json, written) => {
  expect(writtenMember(json, "arguments")).toBe(written);
});

it.each([
  '{"tool":"t","arguments":{"a":2,"b":-1.5,"c":"2.0"}}',
  '{"tool":"t","other":{"arguments":{"a":2.0}},"arguments":{}}',
  '{"tool":"t"}',
])("has nothing to keep in %s", (json) => {
  expect(writtenMember(json, "arguments")).toBeUndefined();
});

it("a call is an action and back again, number for number", () => {
  const action = '{"tool":"refuel","arguments":{"gb":2.0,"n":1}}';
  const call = readCall(action)!;
  expect(call.arguments).toEqual({ gb: 2, n: 1 });
  expect(callText(call)).toBe(action);
});

it("a model's call keeps its numbers", () => {
  const tools = [{ name: "refuel", description: "", parameters: { type: "object" } }];
  const response = '<tool_call>\n{"name": "refuel", "arguments": {"gb": 2.0}}\n</tool_call>';
  expect(parseCall(response, "hermes", tools).action).toBe(
    '{"tool":"refuel","arguments":{"gb":2.0}}',
  );
  expect(parseCall('{"name": "refuel", "parameters": {"gb": 3}}', "llama", tools).action).toBe(
    '{"tool":"refuel","arguments":{"gb":3}}',
  );
});
