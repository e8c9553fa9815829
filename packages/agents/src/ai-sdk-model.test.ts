import type { Engine } from "@pawl/core/engine/engine.js";
import {
  generateText,
  jsonSchema,
  type LanguageModel,
  stepCountIs,
  streamText,
  ToolLoopAgent,
  tool,
} from "ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { pawlModel } from "./ai-sdk-model.js";
import { directly, look, overfitEngine, question, TURNS } from "./overfit-model-testing.js";
import { createSession, type RecordedSession } from "./session.js";
import { hermes, scriptedSession, tools } from "./testing.js";

// The schema that the model has learnt.
const looking = tool({
  description: tools[0]!.description,
  inputSchema: jsonSchema<{ place: string }>(tools[0]!.parameters),
  execute: async ({ place }) => look({ place }),
});
const strict = tool({ inputSchema: z.object({ place: z.string() }), execute: async () => "seen" });

let engine: Engine;
beforeAll(async () => {
  engine = await overfitEngine();
});
afterAll(() => engine.dispose());

const start = (): RecordedSession =>
  createSession({
    sampler: directly(engine),
    tokenizer: hermes,
    maxContext: 1024,
    seed: 3,
    sampling: { maxTokens: 128, temperature: 0.3 },
  });

/** What is learnt is what was sampled: ids of every turn in the last, log-probabilities as scored. */
async function expectExact({ calls }: RecordedSession): Promise<void> {
  const [scored] = await engine.forward([{ ids: calls.at(-1)!.sequence.ids }]);
  for (const { prompt, sample } of calls) {
    const { ids } = calls.at(-1)!.sequence;
    const first = prompt.ids.length;
    expect(ids.slice(0, first)).toEqual(prompt.ids);
    expect(ids.slice(first, first + sample.tokens.length)).toEqual(sample.tokens);
    sample.logprobs.forEach((logprob, at) => {
      expect(Math.abs(logprob - scored!.logprobs[first + at]!)).toBeLessThan(1e-4);
    });
  }
}

describe("a program of the AI SDK", () => {
  it("is a ToolLoopAgent over ten turns with tools, and its tokens are those sampled", async () => {
    const session = start();
    const model: LanguageModel = pawlModel(session);
    const agent = new ToolLoopAgent({
      model,
      tools: { look: looking },
      stopWhen: stepCountIs(TURNS + 2),
    });
    const result = await agent.generate({ prompt: question });
    expect(result.text).toBe("enough");
    expect(result.reasoningText).toBe("all seen");
    expect(result.steps).toHaveLength(TURNS + 1);
    expect(result.steps[4]!.toolCalls).toHaveLength(2);
    expect(result.steps.map(({ finishReason }) => finishReason)).toEqual([
      ...Array<string>(TURNS).fill("tool-calls"),
      "stop",
    ]);
    const { calls } = session;
    expect(calls).toHaveLength(TURNS + 1);
    expect(calls.map(({ parent }) => parent)).toEqual([undefined, ...calls.slice(0, -1)]);
    result.steps.forEach(({ providerMetadata, usage }, at) => {
      const { tokens, logprobs } = calls[at]!.sample;
      expect(providerMetadata!.pawl).toEqual({ tokens, logprobs });
      expect(usage.inputTokens).toBe(calls[at]!.prompt.ids.length);
      expect(usage.outputTokens).toBe(tokens.length);
    });
    await expectExact(session);
  });

  it("may have its model straight from an engine, one for each conversation", async () => {
    const source = { engine, tokenizer: hermes, maxTokens: 128, temperature: 0.3 };
    const models = [1, 2].map((seed) => pawlModel({ ...source, seed }, "overfit"));
    const common = { tools: { look: looking }, stopWhen: stepCountIs(TURNS + 2), prompt: question };
    const answers = await Promise.all(models.map((model) => generateText({ model, ...common })));
    expect(answers.map(({ text }) => text)).toEqual(["enough", "enough"]);
    expect(answers[0]!.response.modelId).toBe("overfit");
    for (const { session } of models) await expectExact(session);
  });

  it("streams the same answers", async () => {
    const [whole, streamed] = [start(), start()];
    const common = { tools: { look: looking }, stopWhen: stepCountIs(TURNS + 2), prompt: question };
    const expected = await generateText({ model: pawlModel(whole), ...common });
    const stream = streamText({ model: pawlModel(streamed), ...common });
    let text = "";
    for await (const part of stream.textStream) text += part;
    expect(text).toBe(expected.steps.map((step) => step.text).join(""));
    expect((await stream.steps).map(({ toolCalls }) => toolCalls)).toEqual(
      expected.steps.map(({ toolCalls }) => toolCalls),
    );
    expect(await stream.reasoningText).toBe("all seen");
    expect(streamed.calls.map(({ sample }) => sample)).toEqual(
      whole.calls.map(({ sample }) => sample),
    );
    await expectExact(streamed);
  });
});

describe("what the SDK passes on", () => {
  const say = (texts: readonly string[], more: object = {}) => {
    const { session, asked } = scriptedSession(texts, more);
    return { session, asked, model: pawlModel(session) };
  };

  it("a call of an unknown tool and malformed calls, which the agent answers", async () => {
    const { session, model } = say([
      '<tool_call>{"name": "fly", "arguments": {}}</tool_call>',
      '<tool_call>{"name": look}</tool_call>',
    ]);
    const { steps, text } = await generateText({
      model,
      tools: { look: looking },
      prompt: "go",
      stopWhen: stepCountIs(5),
    });
    expect(steps).toHaveLength(2);
    expect(text).toBe('<tool_call>{"name": look}</tool_call>');
    expect(steps[0]!.content).toContainEqual(expect.objectContaining({ type: "tool-error" }));
    const { answer, replies } = session.calls[0]!;
    expect(answer.malformed).toContain("no tool fly");
    expect(replies[0]!.content).toContain("unavailable tool 'fly'");
    expect(session.calls[1]!.parent).toBe(session.calls[0]);
  });

  it("arguments that do not fit, with the error as the tool's answer", async () => {
    const { session, model } = say([
      '<tool_call>{"name": "look", "arguments": {"place": 3}}</tool_call>',
      "on",
    ]);
    await generateText({ model, tools: { look: strict }, prompt: "go", stopWhen: stepCountIs(5) });
    expect(session.calls[0]!.replies[0]!.content).toMatch(/Invalid input/);
    expect(session.calls[1]!.parent).toBe(session.calls[0]);
  });

  it("warnings for settings that are not obeyed, and refusals", async () => {
    const { model } = say([]);
    const { warnings } = await generateText({
      model,
      prompt: "go",
      presencePenalty: 1,
      temperature: 0.5,
    });
    expect(warnings).toEqual([expect.objectContaining({ feature: "presencePenalty" })]);
    const fixed = say([], { fixed: true });
    const ruled = await generateText({ model: fixed.model, prompt: "go", temperature: 0, seed: 1 });
    expect(ruled.warnings?.map((one) => "feature" in one && one.feature)).toEqual([
      "temperature",
      "seed",
    ]);
    await expect(
      generateText({ model, prompt: "go", tools: { look: looking }, toolChoice: "required" }),
    ).rejects.toThrow("toolChoice: is not supported");
    const image = { type: "image" as const, image: new Uint8Array([137, 80, 78, 71]) };
    await expect(
      generateText({ model, messages: [{ role: "user", content: [image] }] }),
    ).rejects.toThrow("reads text only");
  });

  it("stop sequences, and no tools where none may be called", async () => {
    const { asked, model } = say(["go on enough"]);
    const { text, finishReason } = await generateText({
      model,
      prompt: "go",
      stopSequences: [" enough"],
      tools: { look: looking },
      toolChoice: "none",
    });
    expect([text, finishReason]).toEqual(["go on", "stop"]);
    expect(hermes.decode(Array.from(asked[0]!.prompt))).not.toContain("look");
  });
});
