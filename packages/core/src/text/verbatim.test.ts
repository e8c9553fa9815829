import { expect, it } from "vitest";
import { promptStyle } from "./prompt.js";
import { readAction, verbatimAction } from "./verbatim.js";

it.each([
  ["<think>so</think><action>write\n  x = 1\n    y</action>", "write\n  x = 1\n    y"],
  ["<think>write a b?</think><action> write a  b </action>", "write a  b"],
  ["<think></think><action>one</action>", "one"],
  ["no tags\nsay  (a+b)*  [c] ", "say  (a+b)*  [c]"],
  ["", ""],
])("keeps the white space inside an action: %j", (response, action) => {
  const { action: parsed } = promptStyle(undefined).parse(response);
  expect(verbatimAction(response, parsed)).toBe(action);
});

it("finds an action of any length, and the first of several", () => {
  const long = Array.from({ length: 40_000 }, (_, i) => `w${i}`);
  expect(verbatimAction(`w0 w1\n${long.join("  ")}`, long.join(" "))).toBe(long.join("  "));
  expect(verbatimAction("a a  b a   b", "a b")).toBe("a  b");
});

it("leaves an action that does not stand in the response as it is", () => {
  expect(verbatimAction("<search> a  b</search>", "<search>a b</search>")).toBe(
    "<search>a b</search>",
  );
});

it("lowers actions in every style, and leaves calls of tools as they are", () => {
  for (const style of ["full", "compact", "chat"] as const) {
    const lowering = promptStyle(undefined, { style, lowerCase: true });
    expect(readAction(lowering, lowering.format("Go  To Desk"), {}).action).toBe("go  to desk");
    const kept = promptStyle(undefined, { style });
    expect(readAction(kept, kept.format("Go To Desk"), {}).action).toBe("Go To Desk");
  }
  const chat = promptStyle(undefined, { style: "chat", lowerCase: true });
  const tools = [{ name: "Say", description: "", parameters: { type: "object" } }];
  const call = '{"name": "Say", "arguments": {"Text": "HI"}}';
  expect(readAction(chat, call, { tools }).action).toBe('{"tool":"Say","arguments":{"Text":"HI"}}');
});
