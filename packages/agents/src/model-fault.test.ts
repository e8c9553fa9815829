import {
  InvalidPromptError,
  InvalidToolInputError,
  JSONParseError,
  NoObjectGeneratedError,
  NoOutputGeneratedError,
  NoSuchToolError,
  ToolChoiceViolationError,
  TypeValidationError,
} from "ai";
import { expect, it } from "vitest";
import { isModelFault } from "./agent-policy.js";

const noObject = (modelId: string): Error =>
  new NoObjectGeneratedError({
    response: { id: "1", timestamp: new Date(0), modelId },
    usage: undefined as never,
    finishReason: "stop",
  });
const uncalled = (modelId: string): Error =>
  new ToolChoiceViolationError({
    ...{ toolChoice: { type: "required" }, finishReason: "length" },
    ...{ provider: "pawl", modelId, content: [] },
  });
const untyped = new TypeValidationError({ value: 1, cause: new Error("no text") });
const unknownTool = new NoSuchToolError({ toolName: "fly" });

it.each([
  ["an object that is none", noObject("policy")],
  ["no output", new NoOutputGeneratedError()],
  ["an unknown tool", unknownTool],
  ["a required call that was cut off", uncalled("policy")],
  ["a bad input", new InvalidToolInputError({ toolName: "a", toolInput: "{", cause: untyped })],
  ["no JSON", new JSONParseError({ text: "{", cause: new SyntaxError("end") })],
  ["another type", untyped],
  ["one as a cause of a cause", new Error("a", { cause: new Error("b", { cause: unknownTool }) })],
])("%s is the model's fault", (_, error) => {
  expect(isModelFault(error, "policy")).toBe(true);
});

const circular = new Error("round");
circular.cause = circular;

it.each([
  ["an error of the program", new SyntaxError("Unexpected end of JSON input")],
  ["another model's output", noObject("judge")],
  ["another model's choice of tools", uncalled("judge")],
  ["a bad prompt", new InvalidPromptError({ prompt: 1, message: "no prompt", cause: untyped })],
  ["one that is its own cause", circular],
  ["a text", "NoSuchToolError"],
  ["nothing", undefined],
  ["a look-alike", Object.assign(new Error("x"), { name: "AI_NoSuchToolError" })],
])("%s is not", (_, error) => {
  expect(isModelFault(error, "policy")).toBe(false);
});
