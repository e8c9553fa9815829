import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { afterAll, expect, it } from "vitest";
import { z } from "zod";
import { isTranscriptFile, readTranscripts } from "./read-transcripts.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-telemetry-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** An attribute as OTLP writes it. */
function encoded(value: unknown): object {
  if (Array.isArray(value)) return { arrayValue: { values: value.map(encoded) } };
  if (typeof value === "number") return { intValue: String(value) };
  return { stringValue: String(value) };
}

/** What an exporter does: each span is a record of its own, in the order in which they end. */
function createTracer() {
  const records: object[] = [];
  let started = 0;
  const span = (traceId: string, name: string, given: object) => {
    const attributes: Record<string, unknown> = { ...given };
    const startTimeUnixNano = String(++started);
    return {
      setAttributes: (more: object) => void Object.assign(attributes, more),
      end() {
        const list = Object.entries(attributes)
          .filter(([, value]) => value !== undefined)
          .map(([key, value]) => ({ key, value: encoded(value) }));
        const spans = [{ traceId, name, startTimeUnixNano, attributes: list }];
        records.push({ resourceSpans: [{ scopeSpans: [{ spans }] }] });
      },
      addEvent() {},
      recordException() {},
      setStatus() {},
      spanContext: () => ({ traceId, spanId: "1", traceFlags: 1 }),
    };
  };
  const tracer = (traceId: string) => ({
    startActiveSpan: (name: string, { attributes = {} }: { attributes?: object }, run: unknown) =>
      (run as (one: unknown) => unknown)(span(traceId, name, attributes)),
  });
  return { records, tracer };
}

function read(records: readonly unknown[]) {
  const path = join(folder, "spans.jsonl");
  writeFileSync(path, records.map((one) => `${JSON.stringify(one)}\n`).join(""));
  const problems: string[] = [];
  const transcripts = readTranscripts(path, (kind) => problems.push(kind));
  return { transcripts, problems, path };
}

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const calling = {
  content: [
    { type: "reasoning", text: "Look first." },
    { type: "tool-call", toolCallId: "c1", toolName: "find", input: '{"item":"mug"}' },
  ],
  finishReason: { unified: "tool-calls", raw: undefined },
} as const;
const saying = (text: string, unified: "stop" | "length" = "stop") =>
  ({ content: [{ type: "text", text }], finishReason: { unified, raw: undefined } }) as const;

function scripted(...answers: readonly (typeof calling | ReturnType<typeof saying>)[]) {
  let at = 0;
  return new MockLanguageModelV3({
    doGenerate: async () => {
      const { content, finishReason } = answers[at++]!;
      return { content: [...content], finishReason, usage, warnings: [] };
    },
  });
}

const find = tool({
  description: "Price and stock.",
  inputSchema: z.object({ item: z.string() }),
  execute: async () => ({ price: 4, stock: 0 }),
});
const asked = { system: "Sell.", prompt: "A mug, please.", tools: { find } } as const;

it("an AI SDK agent's spans are its conversation, each answer imitated once", async () => {
  const { records, tracer } = createTracer();
  const telemetry = (trace: string) =>
    ({ isEnabled: true, tracer: tracer(trace) as never }) as const;
  await generateText({
    ...asked,
    model: scripted(calling, saying('{"sold":false}')),
    output: Output.object({ schema: z.object({ sold: z.boolean() }) }),
    stopWhen: stepCountIs(3),
    experimental_telemetry: telemetry("a"),
  });
  await generateText({
    ...asked,
    model: scripted(saying("Hmm", "length")),
    experimental_telemetry: telemetry("b"),
  });
  const { transcripts, problems, path } = read(records);
  expect(problems).toEqual([]);
  expect(isTranscriptFile(path)).toBe(true);
  expect(transcripts).toHaveLength(2);
  expect(transcripts[0]).toMatchObject({
    task: "a",
    messages: [
      { role: "system", content: "Sell." },
      { role: "user", content: "A mug, please." },
      { role: "assistant", calls: [{ id: "c1", tool: "find", arguments: '{"item":"mug"}' }] },
      { role: "tool", content: '{"price":4,"stock":0}', answers: "c1" },
      { role: "assistant", content: '{"sold":false}' },
    ],
    own: [false, false, true, false, true],
    tools: [{ name: "find", description: "Price and stock.", parameters: { required: ["item"] } }],
  });
  // What was cut off is not imitated.
  expect(transcripts[1]!.own).toEqual([false, false, false]);
});

it("streamed answers are read, too", async () => {
  const { records, tracer } = createTracer();
  const chunks = [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "Sold " },
    { type: "text-delta", id: "1", delta: "out." },
    { type: "text-end", id: "1" },
    { type: "finish", finishReason: { unified: "stop", raw: undefined }, usage },
  ] as const;
  const model = new MockLanguageModelV3({
    doStream: async () => ({ stream: simulateReadableStream({ chunks: [...chunks] }) as never }),
  });
  const streamed = streamText({
    model,
    prompt: "A mug?",
    experimental_telemetry: { isEnabled: true, tracer: tracer("s") as never },
  });
  expect(await streamed.text).toBe("Sold out.");
  await streamed.consumeStream();
  const { transcripts, problems } = read(records);
  expect(problems).toEqual([]);
  expect(transcripts.map(({ messages }) => messages.map(({ content }) => content))).toEqual([
    ["A mug?", "Sold out."],
  ]);
});

const text = (content: string) => ({ type: "text", content });
const chat = (attributes: Record<string, unknown>, more: object = {}) => ({
  resourceSpans: [
    {
      scopeSpans: [
        {
          spans: [
            {
              ...{ traceId: "t", name: "chat some-model", startTimeUnixNano: "5", ...more },
              attributes: Object.entries({ "gen_ai.operation.name": "chat", ...attributes }).map(
                ([key, value]) => ({
                  key,
                  value: encoded(typeof value === "string" ? value : JSON.stringify(value)),
                }),
              ),
            },
          ],
        },
      ],
    },
  ],
});

it("spans by OpenTelemetry's conventions are read, with what continues and what forks", () => {
  const user = { role: "user", parts: [text("A mug?")] };
  const called = {
    role: "assistant",
    parts: [{ type: "tool_call", id: "1", name: "find", arguments: { item: "mug" } }],
  };
  const found = {
    role: "tool",
    parts: [{ type: "tool_call_response", id: "1", response: { price: 4 } }],
  };
  const said = (content: string) => ({
    role: "assistant",
    parts: [text(content)],
    finish_reason: "stop",
  });
  const system = { "gen_ai.system_instructions": [text("Sell.")] };
  const spans = [
    [[user], called],
    [[user, called, found], said("4 euros.")],
    [[user, called, found], said("Four.")],
  ].map(([input, output]) =>
    chat({ ...system, "gen_ai.input.messages": input, "gen_ai.output.messages": [output] }),
  );
  const { transcripts, problems } = read(spans);
  expect(problems).toEqual([]);
  expect(transcripts.map(({ messages }) => messages.at(-1)!.content)).toEqual([
    "4 euros.",
    "Four.",
  ]);
  expect(transcripts.map(({ own }) => own)).toEqual([
    [false, false, true, false, true],
    [false, false, false, false, true],
  ]);
  expect(transcripts[0]!.messages).toMatchObject([
    { role: "system", content: "Sell." },
    { role: "user", content: "A mug?" },
    { calls: [{ id: "1", tool: "find", arguments: '{"item":"mug"}' }] },
    { role: "tool", content: '{"price":4}', answers: "1" },
    {},
  ]);
});

it.each<[object, string]>([
  [chat({}), "a call without its messages or its answer"],
  [chat({ "gen_ai.input.messages": "[" }), "a call without its messages or its answer"],
  [chat({ "gen_ai.input.messages": "[", "gen_ai.output.messages": [] }), "a call with 0 answers"],
  [
    chat({
      "gen_ai.input.messages": [{ role: "user", parts: [{ type: "blob" }] }],
      "gen_ai.output.messages": [{ role: "assistant", parts: [] }],
    }),
    'a message with a part of type "blob"',
  ],
  [chat({}, { status: { code: 2 } }), "a call that failed"],
  [
    chat({ "ai.operationId": "ai.generateText.doGenerate", "ai.response.text": "Hi" }),
    "a call without its messages or its answer",
  ],
  [
    chat({
      "ai.operationId": "ai.generateText.doGenerate",
      "ai.prompt.messages": [{ role: "user", content: [{ type: "file" }] }],
      "ai.response.text": "Hi",
    }),
    "a message of the user has a part file",
  ],
])("what cannot be read is named: %#", (record, problem) => {
  const { transcripts, problems } = read([record]);
  expect(transcripts).toEqual([]);
  expect(problems).toEqual([expect.stringContaining(problem)]);
});
