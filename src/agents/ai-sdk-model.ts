/**
 * A model of ours as the AI SDK's language model (specification v3: `ai` 6 and 7), so that a
 * program built on it is trained as it is. Answers are sampled whole; a stream passes on their
 * parts.
 */
import type { Engine } from "../engine/engine.js";
import { createScheduler, type Sampler } from "../rollout/scheduler.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { requestOf } from "./ai-sdk-request.js";
import type { AnswerPart, ModelCall, ModelResult, StreamPart } from "./ai-sdk-types.js";
import type { ChatAnswer } from "./chat.js";
import { createSession, type RecordedSession } from "./session.js";

/** A language model for the AI SDK. */
export interface PawlModel {
  readonly specificationVersion: "v3";
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: Record<string, RegExp[]>;
  /** What is recorded: every call with its tokens. */
  readonly session: RecordedSession;
  doGenerate(call: ModelCall): Promise<ModelResult>;
  doStream(call: ModelCall): Promise<{ stream: ReadableStream<StreamPart> }>;
}

/** An engine with its tokenizer, to be used as it is. */
export interface ModelSource {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  /** The longest answer in tokens (default: 1024). */
  readonly maxTokens?: number;
  /** Where a call does not say (default: 1). */
  readonly temperature?: number;
  readonly seed?: number;
}

/**
 * The model of a session, or of an engine in a session of its own; `modelId` names it in the SDK's
 * results. A session keeps its calls, so each episode or conversation has a model of its own.
 */
export function pawlModel(source: RecordedSession | ModelSource, modelId = "policy"): PawlModel {
  const session = "ask" in source ? source : sessionOf(source);
  const doGenerate: PawlModel["doGenerate"] = async (call) => {
    let asked: ReturnType<typeof requestOf>;
    try {
      asked = requestOf(call, session.options.fixed === true);
    } catch (error) {
      return session.refuse(error);
    }
    const { request, warnings } = asked;
    return { ...resultOf(await session.ask(request, call.abortSignal)), warnings };
  };
  return {
    specificationVersion: "v3",
    provider: "pawl",
    modelId,
    supportedUrls: {},
    session,
    doGenerate,
    async doStream(call) {
      const result = await doGenerate(call);
      return {
        stream: new ReadableStream({
          start(controller) {
            for (const part of streamOf(result)) controller.enqueue(part);
            controller.close();
          },
        }),
      };
    },
  };
}

const schedulers = new WeakMap<Engine, Sampler>();

/** A session over an engine, which all its sessions ask through one queue. */
function sessionOf(source: ModelSource): RecordedSession {
  const { engine, tokenizer, maxTokens = 1024, temperature = 1, seed = 0 } = source;
  const sampler = schedulers.get(engine) ?? createScheduler(engine, { pace: "served" });
  schedulers.set(engine, sampler);
  const { maxContext } = engine.capabilities;
  return createSession({
    ...{ sampler, tokenizer, maxContext, seed },
    sampling: { maxTokens, temperature },
  });
}

const REASONS = { stop: "stop", length: "length", calls: "tool-calls" } as const;

function resultOf(answer: ChatAnswer): Omit<ModelResult, "warnings"> {
  const { text, reasoning, calls, stop, promptTokens, tokens, logprobs, malformed } = answer;
  const textPart = (type: "text" | "reasoning", words: string | undefined): AnswerPart[] =>
    words === undefined || words === "" ? [] : [{ type, text: words }];
  return {
    content: [
      ...textPart("reasoning", reasoning),
      ...textPart("text", text),
      ...calls.map(
        (call): AnswerPart => ({
          type: "tool-call",
          toolCallId: call.id,
          toolName: call.tool,
          input: call.arguments,
        }),
      ),
    ],
    finishReason: { unified: REASONS[stop], raw: stop },
    usage: {
      inputTokens: {
        total: promptTokens.length,
        noCache: undefined,
        cacheRead: undefined,
        cacheWrite: undefined,
      },
      outputTokens: { total: tokens.length, text: undefined, reasoning: undefined },
    },
    providerMetadata: {
      pawl: {
        tokens: [...tokens],
        logprobs: [...logprobs],
        ...(malformed !== undefined && { malformed }),
      },
    },
  };
}

function* streamOf({ content, warnings, ...finish }: ModelResult): Generator<StreamPart> {
  yield { type: "stream-start", warnings };
  for (const [at, part] of content.entries()) {
    if (part.type === "tool-call") {
      const id = part.toolCallId;
      yield { type: "tool-input-start", id, toolName: part.toolName };
      yield { type: "tool-input-delta", id, delta: part.input };
      yield { type: "tool-input-end", id };
      yield part;
    } else {
      const id = String(at);
      yield { type: `${part.type}-start`, id };
      yield { type: `${part.type}-delta`, id, delta: part.text };
      yield { type: `${part.type}-end`, id };
    }
  }
  yield { type: "finish", ...finish };
}
