/**
 * A model of ours as the AI SDK's language model (specification v3: `ai` 6 and 7), so that a
 * program built on it is trained as it is.
 */
import { vocabularyOf } from "@pawl/core/constraint/vocabulary.js";
import type { Engine } from "@pawl/core/engine/engine.js";
import { createScheduler, type Sampler } from "@pawl/core/rollout/scheduler.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { requestOf } from "./ai-sdk-request.js";
import type {
  AnswerPart,
  ModelCall,
  ModelResult,
  ModelWarning,
  StreamPart,
} from "./ai-sdk-types.js";
import type { ChatAnswer, ChatRequest, Heard } from "./chat.js";
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
  const asked = async (call: ModelCall) => {
    try {
      return requestOf(call, session.options.fixed === true);
    } catch (error) {
      return session.refuse(error);
    }
  };
  return {
    specificationVersion: "v3",
    provider: "pawl",
    modelId,
    supportedUrls: {},
    session,
    async doGenerate(call) {
      const { request, warnings } = await asked(call);
      return { ...resultOf(await session.ask(request, call.abortSignal)), warnings };
    },
    async doStream(call) {
      const { request, warnings } = await asked(call);
      return { stream: await streamOf(session, request, warnings, call.abortSignal) };
    },
  };
}

const schedulers = new WeakMap<Engine, Sampler>();

/** A session over an engine, which all its sessions ask through one queue. */
function sessionOf(source: ModelSource): RecordedSession {
  const { engine, tokenizer, maxTokens = 1024, temperature = 1, seed = 0 } = source;
  const sampler = schedulers.get(engine) ?? createScheduler(engine, { pace: "served" });
  schedulers.set(engine, sampler);
  const { maxContext, constraints } = engine.capabilities;
  engine.useVocabulary?.(() => vocabularyOf(tokenizer));
  return createSession({
    ...{ sampler, tokenizer, maxContext, constraints, seed },
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

/** The answer as a stream, once it has begun: what is refused before is no stream. */
function streamOf(
  session: RecordedSession,
  request: ChatRequest,
  warnings: ModelWarning[],
  signal: AbortSignal | undefined,
): Promise<ReadableStream<StreamPart>> {
  return new Promise((resolve, reject) => {
    const cancelled = new AbortController();
    let open: { readonly type: "text" | "reasoning"; readonly id: string } | undefined;
    let parts = 0;
    let controller: ReadableStreamDefaultController<StreamPart> | undefined;
    const send = (part: StreamPart): void => {
      if (!cancelled.signal.aborted) controller?.enqueue(part);
    };
    const close = (): void => {
      if (open !== undefined) send({ type: `${open.type}-end`, id: open.id });
      open = undefined;
    };
    const begin = (): void => {
      resolve(
        new ReadableStream({
          start: (given) => {
            controller = given;
          },
          cancel: (reason) => cancelled.abort(reason),
        }),
      );
      send({ type: "stream-start", warnings });
    };
    const hear = (heard: Heard): void => {
      if ("prompt" in heard) {
        begin();
        return;
      }
      const [type, delta] =
        "text" in heard
          ? (["text", heard.text] as const)
          : (["reasoning", heard.reasoning] as const);
      if (open?.type !== type) {
        close();
        open = { type, id: String(parts++) };
        send({ type: `${type}-start`, id: open.id });
      }
      send({ type: `${type}-delta`, id: open.id, delta });
    };
    const both =
      signal === undefined ? cancelled.signal : AbortSignal.any([signal, cancelled.signal]);
    session.ask(request, both, hear).then(
      (answer) => {
        close();
        const { content, ...finish } = resultOf(answer);
        for (const part of content) {
          if (part.type !== "tool-call") continue;
          const id = part.toolCallId;
          send({ type: "tool-input-start", id, toolName: part.toolName });
          send({ type: "tool-input-delta", id, delta: part.input });
          send({ type: "tool-input-end", id });
          send(part);
        }
        send({ type: "finish", ...finish });
        if (!cancelled.signal.aborted) controller?.close();
      },
      (error: unknown) => {
        reject(error);
        if (!cancelled.signal.aborted) controller?.error(error);
      },
    );
  });
}
