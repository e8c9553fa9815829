/** Clients of every API, as their registries have them, over ten turns with tools. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Engine } from "@pawl/core/engine/engine.js";
import { createScheduler } from "@pawl/core/rollout/scheduler.js";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { look, overfitEngine, question, TURNS } from "../overfit-model-testing.js";
import { tools } from "../testing.js";
import type { CallRecord } from "./session-record.js";
import { startEndpoint, type TestEndpoint } from "./testing.js";

/** A folder in which the clients are installed: .ci/run says which. */
const folder = process.env.PAWL_CLIENTS;
// biome-ignore lint/suspicious/noExplicitAny: the clients are not installed here, so they have no types.
type Loose = any;
const load = (name: string): Promise<Loose> =>
  import(pathToFileURL(createRequire(join(folder!, "package.json")).resolve(name)).href);

let engine: Engine;
let endpoint: TestEndpoint;
beforeAll(async () => {
  engine = await overfitEngine();
  endpoint = await startEndpoint(createScheduler(engine, { pace: "served", sliceTokens: 8 }));
});
afterAll(async () => {
  await endpoint.close();
  await engine.dispose();
});

const [{ name, description, parameters }] = tools as [(typeof tools)[0]];

/** An answer as a client heard it; tokens where its API passes them on. */
interface Heard {
  readonly text: string;
  readonly arguments: readonly unknown[];
  readonly tokens?: readonly number[];
  readonly logprobs?: readonly number[];
  /** Tokens of the prompt and of the answer. */
  readonly usage?: readonly number[];
}

/** An agent that looks where the model says, until it calls no tool any more. */
type Agent = (baseURL: string, isStreamed: boolean) => Promise<readonly Heard[]>;

const limit = TURNS + 3;
const common = { model: "policy", return_token_ids: true };

/** OpenAI's responses; what was said before is sent again, or referred to. */
const responses =
  (isReferring: boolean): Agent =>
  async (baseURL, isStreamed) => {
    const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
    const offered = [
      {
        type: "function" as const,
        name,
        description,
        parameters: { ...parameters },
        strict: false,
      },
    ];
    const heard: Heard[] = [];
    let input: Loose[] = [{ role: "user", content: question }];
    let previous: string | undefined;
    while (heard.length < limit) {
      const body: Loose = {
        ...{ ...common, input, tools: offered },
        ...(isReferring ? { previous_response_id: previous } : { store: false }),
      };
      const response: Loose = isStreamed
        ? await client.responses.stream(body).finalResponse()
        : await client.responses.create(body);
      const calls = response.output.filter(({ type }: Loose) => type === "function_call");
      heard.push({
        text: response.output_text,
        arguments: calls.map((call: Loose) => JSON.parse(call.arguments)),
        tokens: response.token_ids,
        logprobs: response.token_logprobs,
      });
      if (calls.length === 0) break;
      const results = calls.map((call: Loose) => ({
        type: "function_call_output",
        call_id: call.call_id,
        output: look(JSON.parse(call.arguments)),
      }));
      previous = response.id;
      input = isReferring ? results : [...input, ...response.output, ...results];
    }
    return heard;
  };

const anthropic: Agent = async (baseURL, isStreamed) => {
  const { default: Anthropic } = await load("@anthropic-ai/sdk");
  const client = new Anthropic({
    baseURL: baseURL.replace(/\/v1$/, ""),
    apiKey: "none",
    maxRetries: 0,
  });
  const messages: Loose[] = [{ role: "user", content: question }];
  const heard: Heard[] = [];
  while (heard.length < limit) {
    const body = {
      ...{ ...common, max_tokens: 64, messages },
      tools: [{ name, description, input_schema: parameters }],
    };
    let tokens: Loose = {};
    let message: Loose;
    if (isStreamed) {
      const stream = client.messages.stream(body);
      for await (const event of stream) if (event.token_ids !== undefined) tokens = event;
      message = await stream.finalMessage();
    } else tokens = message = await client.messages.create(body);
    const calls = message.content.filter(({ type }: Loose) => type === "tool_use");
    const texts = message.content.filter(({ type }: Loose) => type === "text");
    heard.push({
      text: texts.map(({ text }: Loose) => text).join(""),
      arguments: calls.map(({ input }: Loose) => input),
      tokens: tokens.token_ids,
      logprobs: tokens.token_logprobs,
    });
    messages.push({ role: "assistant", content: message.content });
    if (calls.length === 0) break;
    const content = calls.map(({ id, input }: Loose) => {
      return { type: "tool_result", tool_use_id: id, content: look(input) };
    });
    messages.push({ role: "user", content });
  }
  return heard;
};

/** The AI SDK with one of its providers. */
const aiSdk =
  (model: (baseURL: string) => Promise<Loose>): Agent =>
  async (baseURL, isStreamed) => {
    const { generateText, jsonSchema, stepCountIs, streamText } = await load("ai");
    const request = {
      model: await model(baseURL),
      prompt: question,
      tools: { look: { description, inputSchema: jsonSchema(parameters), execute: look } },
      stopWhen: stepCountIs(limit),
      maxRetries: 0,
    };
    const result = isStreamed ? streamText(request) : await generateText(request);
    const steps = await result.steps;
    return steps.map(({ text, toolCalls }: Loose) => ({
      text,
      arguments: toolCalls.map(({ input }: Loose) => input),
    }));
  };

const langGraph: Agent = async (baseURL, isStreamed) => {
  const { createReactAgent } = await load("@langchain/langgraph/prebuilt");
  const { ChatOpenAI } = await load("@langchain/openai");
  const { tool } = await load("@langchain/core/tools");
  const llm = new ChatOpenAI({
    ...{ model: "policy", apiKey: "none", maxRetries: 0, streaming: isStreamed },
    configuration: { baseURL },
  });
  const looking = tool(look, { name, description, schema: parameters });
  const agent = createReactAgent({ llm, tools: [looking] });
  const input = { messages: [{ role: "user", content: question }] };
  const config = { recursionLimit: 4 * limit };
  let messages: readonly Loose[] = [];
  // Whoever streams listens; unheard, LangChain counts the tokens itself, with a tokenizer that it fetches.
  if (isStreamed)
    for await (const [mode, chunk] of await agent.stream(input, {
      ...config,
      streamMode: ["messages", "values"],
    }))
      messages = mode === "values" ? chunk.messages : messages;
  else ({ messages } = await agent.invoke(input, config));
  return messages
    .filter((message: Loose) => message.getType() === "ai")
    .map(({ content, tool_calls: calls, usage_metadata: usage }: Loose) => ({
      text: content,
      arguments: calls.map(({ args }: Loose) => args),
      usage: [usage.input_tokens, usage.output_tokens],
    }));
};

const provider = (library: string, make: string, settings: object, pick?: string) =>
  aiSdk(async (baseURL) => {
    const made = (await load(library))[make]({ baseURL, apiKey: "none", ...settings });
    return (pick === undefined ? made : made[pick])("policy");
  });

const own: readonly (readonly [string, Agent])[] = [
  ["openai's responses", responses(false)],
  ["openai's responses that refer to earlier ones", responses(true)],
];
const optional: readonly (readonly [string, Agent])[] = [
  ["@anthropic-ai/sdk", anthropic],
  ["@ai-sdk/openai, responses", provider("@ai-sdk/openai", "createOpenAI", {})],
  ["@ai-sdk/openai, chat", provider("@ai-sdk/openai", "createOpenAI", {}, "chat")],
  ["@ai-sdk/anthropic", provider("@ai-sdk/anthropic", "createAnthropic", {})],
  [
    "@ai-sdk/openai-compatible",
    provider("@ai-sdk/openai-compatible", "createOpenAICompatible", { name: "pawl" }),
  ],
  ["LangGraph.js", langGraph],
];
const cases = (list: typeof own) =>
  list.flatMap(([what, agent]) =>
    [false, true].map((isStreamed) => [what, isStreamed ? "streamed" : "whole", agent] as const),
  );

async function check(what: string, how: string, agent: Agent): Promise<void> {
  const session = `${what}-${how}`.replace(/[^\w]+/g, "-");
  const heard = await agent(`${endpoint.url}/sessions/${session}/v1`, how === "streamed");
  expect(heard).toHaveLength(TURNS + 1);
  expect(heard[4]!.arguments).toHaveLength(2);
  const { calls } = (await endpoint.call("GET", `/sessions/${session}`))[1] as {
    readonly calls: readonly CallRecord[];
  };
  // One conversation, each call of which continues the one before, token for token.
  expect(calls.map(({ parent }) => parent)).toEqual([null, ...Array(TURNS).keys()]);
  calls.forEach((call, at) => {
    const { text, arguments: values, tokens, logprobs, usage } = heard[at]!;
    expect(text).toBe(call.answer.content);
    const written = (call.answer.calls ?? []).map((one) => JSON.parse(one.arguments));
    expect(values).toEqual(written);
    expect(tokens ?? call.token_ids).toEqual(call.token_ids);
    expect(logprobs ?? call.logprobs).toEqual(call.logprobs);
    if (usage !== undefined)
      expect(usage).toEqual([call.prompt_token_ids.length, call.token_ids.length]);
    const next = calls[at + 1]?.prompt_token_ids;
    const sampled = [...call.prompt_token_ids, ...call.token_ids];
    if (next !== undefined) expect(next.slice(0, sampled.length)).toEqual(sampled);
  });
  const last = calls.at(-1)!;
  const [scored] = await engine.forward([{ ids: [...last.prompt_token_ids, ...last.token_ids] }]);
  for (const { prompt_token_ids: prompt, logprobs } of calls)
    logprobs.forEach((logprob, at) => {
      expect(Math.abs(logprob - scored!.logprobs[prompt.length + at]!)).toBeLessThan(1e-4);
    });
}

describe("over ten turns with tools, what was sampled is recorded and heard", () => {
  it.each(cases(own))("%s, %s", check);
  it.skipIf(folder === undefined).each(cases(optional))(
    "%s, %s (skipped without the clients that PAWL_CLIENTS names)",
    check,
  );
});
