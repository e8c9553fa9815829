import { dose } from "@pawl/core/dose-testing.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseCompletionRequest } from "./completion-request.js";
import { errorBody, Refusal } from "./refusal.js";

const hello = [{ role: "user", content: "hello" }];
const parse = (more: object) =>
  parseCompletionRequest({ model: "policy", messages: hello, ...more });

/** The refusal of a request. */
function refused(body: unknown): Refusal {
  try {
    parseCompletionRequest(body);
  } catch (error) {
    expect(error).toBeInstanceOf(Refusal);
    return error as Refusal;
  }
  throw new Error("it was not refused");
}

describe("a request", () => {
  it("is a conversation with tools in our words", () => {
    const look = { name: "look", description: "Looks.", parameters: { type: "object" } };
    const call = { id: "c1", type: "function", function: { name: "look", arguments: "{}" } };
    const request = parse({
      messages: [
        { role: "developer", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "a" },
            { type: "text", text: "b" },
          ],
        },
        {
          ...{
            role: "assistant",
            content: null,
            refusal: null,
            annotations: [],
            name: "bot",
            parsed: null,
          },
          ...{ reasoning_content: "hm", tool_calls: [call] },
        },
        { role: "tool", content: "seen", tool_call_id: "c1", name: "look" },
      ],
      tools: [
        { type: "function", function: look },
        { type: "function", function: { name: "b" } },
      ],
    });
    expect(request.messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "ab" },
      {
        ...{ role: "assistant", content: "", reasoning: "hm" },
        calls: [{ id: "c1", tool: "look", arguments: "{}" }],
      },
      { role: "tool", content: "seen", answers: "c1" },
    ]);
    expect(request.tools).toEqual([
      look,
      { name: "b", description: "", parameters: { type: "object", properties: {} } },
    ]);
  });

  it("says how to sample and what to return", () => {
    expect(
      parse({
        ...{ max_completion_tokens: 9, temperature: 0, top_p: 0.5, top_k: -1, seed: 7, stop: "x" },
        ...{ stream: true, stream_options: { include_usage: true } },
        ...{ logprobs: true, return_token_ids: true },
      }),
    ).toEqual({
      ...{ model: "policy", messages: hello },
      ...{ maxTokens: 9, temperature: 0, topP: 0.5, topK: 0, seed: 7, stop: ["x"] },
      ...{ stream: true, streamUsage: true, logprobs: true, tokenIds: true },
    });
    expect(parse({ max_tokens: 3, max_completion_tokens: 3 }).maxTokens).toBe(3);
    expect(parse({ tools: [], tool_choice: "none" }).tools).toBeUndefined();
  });

  it("may have fields that ask for nothing", () => {
    const plain = parse({});
    const nothing = {
      ...{ n: 1, logit_bias: {}, response_format: { type: "text" }, top_logprobs: 0, user: "me" },
      ...{ frequency_penalty: 0, presence_penalty: 0, parallel_tool_calls: true, store: false },
      ...{ stop: null, temperature: null, tools: null, stream: false, logprobs: null },
    };
    expect(parse(nothing)).toEqual(plain);
  });
});

it("says what an answer must be", () => {
  const offered = [{ type: "function", function: { name: "a", strict: true } }];
  const schema = { type: "object" };
  expect(
    parse({
      ...{ tools: offered, tool_choice: "required", parallel_tool_calls: false },
      response_format: { type: "json_schema", json_schema: { name: "x", schema, strict: true } },
    }),
  ).toMatchObject({
    ...{ toolChoice: "required", strictTools: ["a"], oneCall: true },
    format: { name: "x", schema },
  });
  const chosen = { type: "function", function: { name: "a" } };
  expect(parse({ tools: offered, tool_choice: chosen }).toolChoice).toEqual({ tool: "a" });
  expect(parse({ response_format: { type: "json_object" } }).format).toEqual({});
});

describe("refused by name is", () => {
  it.each([
    [{ n: 2 }, "n: is not supported; send the request again instead"],
    [{ tool_choice: "any" }, "tool_choice: expected auto, none, required or"],
    [{ logit_bias: { 5: 1 } }, "logit_bias: is not supported"],
    [{ top_logprobs: 3 }, "top_logprobs: is not supported; only the sampled tokens"],
    [{ presence_penalty: 0.5 }, "presence_penalty: is not supported"],
    [{ reasoning_effort: "high" }, "reasoning_effort: is not supported; leave it out"],
    [{ functions: [] }, "functions: is not supported; leave it out"],
    [{ stream_options: { include_usage: true } }, "stream_options is for streams"],
    [{ max_tokens: 1, max_completion_tokens: 2 }, "give one of them"],
    [{ max_tokens: 0 }, "max_tokens: Too small"],
    [{ temperature: "hot" }, "temperature: Invalid input: expected number"],
    [{ temperature: 3 }, "temperature: Too big"],
    [{ stop: "" }, "stop: "],
    [{ messages: [] }, "messages: Too small"],
    [{ messages: [{ role: "function", content: "x" }] }, "messages[0].role: Invalid discriminator"],
    [{ messages: [{ role: "user" }] }, "messages[0].content: expected a text"],
    [{ messages: [{ role: "user", content: "a", name: "Al" }] }, "messages[0].name: is not sup"],
    [
      { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }] },
      'messages[0].content[0]: a part of type "image_url" is not supported',
    ],
    [
      { messages: [{ role: "assistant", tool_calls: [{ id: "a", function: { name: "b" } }] }] },
      "messages[0].tool_calls[0].function.arguments: Invalid input",
    ],
    [{ messages: [{ role: "assistant", refusal: "no" }] }, "messages[0].refusal: is not supported"],
    [{ messages: [{ role: "tool", content: "x" }] }, "messages[0].tool_call_id: Invalid input"],
    [{ tools: [{ type: "web_search" }] }, "tools[0].type: only tools of type function"],
    [{ tools: [{ type: "function", function: { name: "a b" } }] }, "tools[0].function.name: exp"],
    [
      { tools: Array(2).fill({ type: "function", function: { name: "a" } }) },
      "tools: two tools have the same name",
    ],
  ])("%j", (more, message) => {
    const refusal = refused({ model: "policy", messages: hello, ...more });
    expect(refusal.message).toContain(message);
    const [place] = message.split(/: | is /);
    expect(errorBody(refusal)).toEqual({
      error: {
        message: refusal.message,
        type: "invalid_request_error",
        param: message.startsWith("give") ? "max_tokens" : place,
        code: null,
      },
    });
  });

  it("anything else, never with another error", () => {
    const text = fc.oneof(fc.string(), fc.constant(null), fc.array(fc.jsonValue()));
    const message = fc.record(
      { role: fc.constantFrom("user", "assistant", "tool", "system", 3), content: text },
      { requiredKeys: [] },
    );
    const request = fc.record(
      {
        model: fc.constantFrom("policy", 1),
        messages: fc.oneof(fc.array(message, { maxLength: 3 }), fc.jsonValue()),
        tools: fc.jsonValue(),
        stop: fc.jsonValue(),
        n: fc.jsonValue(),
      },
      { requiredKeys: ["messages"] },
    );
    fc.assert(
      fc.property(fc.oneof(request, fc.jsonValue()), (body) => {
        try {
          expect(parseCompletionRequest(body).messages.length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(Refusal);
          expect((error as Refusal).status).toBe(400);
        }
      }),
      { numRuns: dose(300) },
    );
  });
});
