import { execFile, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { dose } from "@pawl/core/dose-testing.js";
import type { Engine } from "@pawl/core/engine/engine.js";
import { createScheduler } from "@pawl/core/rollout/scheduler.js";
import OpenAI, { APIError } from "openai";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { look, overfitEngine, question, TURNS } from "../overfit-model-testing.js";
import { tools } from "../testing.js";
import type { CallRecord } from "./session-record.js";
import { startEndpoint, type TestEndpoint } from "./testing.js";

let engine: Engine;
let endpoint: TestEndpoint;
beforeAll(async () => {
  engine = await overfitEngine();
  // Answers are longer than a slice, so that they are sampled in several.
  endpoint = await startEndpoint(createScheduler(engine, { pace: "served", sliceTokens: 8 }));
});
afterAll(async () => {
  await endpoint.close();
  await engine.dispose();
});

const offered = tools.map((tool) => ({ type: "function", function: { ...tool } }) as const);
/** Fields of ours, which the package passes on. */
const extra = { return_token_ids: true };

/** One answer as an agent sees it, with the tokens that came with it. */
interface Seen {
  readonly message: ChatCompletionMessageParam & { role: "assistant" };
  readonly finish: string | null;
  readonly prompt: readonly number[];
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
}

type Ask = (client: OpenAI, messages: ChatCompletionMessageParam[]) => Promise<Seen>;
type WithTokens<T> = T & { prompt_token_ids?: number[]; token_ids?: number[] };

const plainly: Ask = async (client, messages) => {
  const body = { model: "policy", messages, tools: offered, logprobs: true, ...extra };
  const completion: WithTokens<OpenAI.ChatCompletion> = await client.chat.completions.create(body);
  const choice: WithTokens<OpenAI.ChatCompletion.Choice> = completion.choices[0]!;
  return {
    message: choice.message,
    finish: choice.finish_reason,
    prompt: completion.prompt_token_ids!,
    tokens: choice.token_ids!,
    logprobs: choice.logprobs!.content!.map(({ logprob }) => logprob),
  };
};

/** By the package's own helper, which puts the chunks together. */
const streaming: Ask = async (client, messages) => {
  const body = { model: "policy", messages, tools: offered, logprobs: true, ...extra };
  const stream = client.chat.completions.stream(body);
  let prompt: readonly number[] = [];
  const [tokens, logprobs]: [number[], number[]] = [[], []];
  for await (const chunk of stream as AsyncIterable<WithTokens<OpenAI.ChatCompletionChunk>>) {
    prompt = chunk.prompt_token_ids ?? prompt;
    const choice: WithTokens<OpenAI.ChatCompletionChunk.Choice> = chunk.choices[0]!;
    tokens.push(...(choice.token_ids ?? []));
    logprobs.push(...(choice.logprobs?.content ?? []).map(({ logprob }) => logprob));
  }
  const { message, finish_reason: finish } = (await stream.finalChatCompletion()).choices[0]!;
  return { message, finish, prompt, tokens, logprobs };
};

/** An agent that looks where the model says, until it calls no tool any more. */
async function agent(session: string, ask: Ask): Promise<readonly Seen[]> {
  const baseURL = `${endpoint.url}/sessions/${session}/v1`;
  const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
  const messages: ChatCompletionMessageParam[] = [{ role: "user", content: question }];
  const seen: Seen[] = [];
  while (seen.length < TURNS + 3) {
    const answer = await ask(client, messages);
    seen.push(answer);
    messages.push(answer.message);
    const { tool_calls: calls = [] } = answer.message;
    if (calls.length === 0) break;
    for (const call of calls)
      if (call.type === "function")
        messages.push({
          role: "tool",
          tool_call_id: call.id,
          content: look(JSON.parse(call.function.arguments)),
        });
  }
  return seen;
}

describe.each([
  ["whole", plainly],
  ["streamed", streaming],
])("answers that come %s", (name, ask) => {
  it("are recorded over ten turns with tools as they were sampled", async () => {
    const seen = await agent(name, ask);
    expect(seen.map(({ finish }) => finish)).toEqual([
      ...Array<string>(TURNS).fill("tool_calls"),
      "stop",
    ]);
    expect(seen[4]!.message.tool_calls).toHaveLength(2);
    expect(seen.at(-1)!.message.content).toBe("enough");
    const { calls } = (await endpoint.call("GET", `/sessions/${name}`))[1] as {
      readonly calls: readonly CallRecord[];
    };
    expect(calls.map(({ parent }) => parent)).toEqual([null, ...Array(TURNS).keys()]);
    calls.forEach((call, at) => {
      expect(call.token_ids).toEqual(seen[at]!.tokens);
      expect(call.logprobs).toEqual(seen[at]!.logprobs);
      expect(call.prompt_token_ids).toEqual(seen[at]!.prompt);
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
  });
});

const python = spawnSync("python3", ["--version"]).status === 0;
it.skipIf(!python).each(["whole", "stream"])(
  "records an agent in Python, with answers that come %s (skipped without python3)",
  async (mode) => {
    const name = `python-${mode}`;
    const script = fileURLToPath(new URL("client-testing.py", import.meta.url));
    const args = [`${endpoint.url}/sessions/${name}/v1`, mode, question, JSON.stringify(offered)];
    const { stdout } = await promisify(execFile)("python3", [script, ...args]);
    const heard = stdout.trim().split("\n");
    expect(heard).toHaveLength(TURNS + 1);
    const { calls } = (await endpoint.call("GET", `/sessions/${name}`))[1] as {
      readonly calls: readonly CallRecord[];
    };
    expect(calls.map(({ parent }) => parent)).toEqual([null, ...Array(TURNS).keys()]);
    expect(heard.map((line) => JSON.parse(line))).toEqual(
      calls.map(({ answer }) => ({
        content: answer.content,
        calls: (answer.calls ?? []).map((call) => call.arguments),
      })),
    );
  },
);

it("gives many agents at once their own answers", async () => {
  const names = Array.from({ length: dose(8, 4) }, (_, i) => `crowd-${i}`);
  const all = await Promise.all(names.map((name, i) => agent(name, i % 2 ? streaming : plainly)));
  for (const [i, seen] of all.entries()) {
    const { calls } = (await endpoint.call("DELETE", `/sessions/${names[i]}`))[1] as {
      readonly calls: readonly CallRecord[];
    };
    expect(calls.map((call) => call.token_ids)).toEqual(seen.map(({ tokens }) => tokens));
    expect(calls.map((call) => call.prompt_token_ids)).toEqual(seen.map(({ prompt }) => prompt));
  }
});

it("is refused in the package's own errors", async () => {
  const client = new OpenAI({ baseURL: `${endpoint.url}/v1`, apiKey: "none", maxRetries: 0 });
  const messages = [{ role: "user", content: "go" }] as const;
  const asked = client.chat.completions.create({ model: "policy", messages: [...messages], n: 2 });
  const error = await asked.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(APIError);
  expect(error).toMatchObject({ status: 400, param: "n", type: "invalid_request_error" });
  const [model] = (await client.models.list()).data;
  expect(model!.id).toBe("policy");
});
