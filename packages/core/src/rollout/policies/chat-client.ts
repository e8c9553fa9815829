/**
 * A client for any OpenAI-compatible `/chat/completions` endpoint; retries are explained in
 * `http-client.ts`. The key is read from an environment variable, kept in this closure and removed
 * from every error. The jitter of the back-off comes from the question's seed.
 */
import { z } from "zod";
import { chatEndpointOptions } from "../../envs/chat-endpoint.js";
import { UserError } from "../../errors.js";
import { type HttpRuntime, keyFrom, postJson } from "../../http/http-client.js";
import { createRandom, mixSeed } from "../../random.js";
import type { ChatMessage } from "../../text/tokenizer.js";
import { requireConsent } from "../../trust/consent.js";

const { baseUrl, model, apiKeyVariable, timeoutMs } = chatEndpointOptions.shape;

/** Settings of the connection. */
export const chatClientOptions = z.strictObject({
  baseUrl,
  model,
  apiKeyVariable,
  temperature: z.number().min(0).default(0.4).describe("sampling temperature"),
  maxTokens: z.int().min(1).default(512).describe("maximum length of an answer in tokens"),
  extra: z
    .record(z.string(), z.unknown())
    .default({})
    .describe("extra fields for every request, as JSON; null removes a field"),
  concurrency: z.int().min(1).default(8).describe("maximum number of concurrent requests"),
  timeoutMs,
  retries: z.int().min(0).default(5).describe("retries after a failed request"),
  backoffMs: z
    .number()
    .min(0)
    .default(500)
    .describe("delay before the first retry in milliseconds; doubles each time, ±50 %"),
});

/** Settings of the connection, with defaults filled in. */
export type ChatClientSettings = z.output<typeof chatClientOptions>;

/** No answer of a chat model is longer; a stream that never ends must not fill the memory. */
const MAX_ANSWER_BYTES = 2 ** 24;

/** Answers a dialogue. */
export type ChatClient = (
  messages: readonly ChatMessage[],
  seed: number,
  signal?: AbortSignal,
) => Promise<string>;

/** What a client needs from the process, so that tests need not wait. */
export interface ChatRuntime extends Partial<HttpRuntime> {
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** A problem with a chat endpoint, shown to the user as it is. */
export class ChatError extends UserError {
  override readonly name = "ChatError";
}

const completion = z.object({
  choices: z
    .array(z.object({ message: z.object({ content: z.string().nullish() }) }))
    .min(1, "no choices"),
});

/** A client for one model. */
export function createChatClient(
  settings: ChatClientSettings,
  runtime: ChatRuntime = { environment: process.env },
): ChatClient {
  requireConsent(chatClientOptions, settings, "chat");
  const url = new URL(settings.baseUrl);
  if (url.username !== "" || url.password !== "") {
    throw new ChatError(
      `baseUrl must not contain a user name or password. Put the key in ${settings.apiKeyVariable}.`,
    );
  }
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/chat/completions`;
  const { model, apiKeyVariable } = settings;
  const key = keyFrom(runtime.environment, [apiKeyVariable]);
  const limit = limiter(settings.concurrency);

  return (messages, seed, signal) =>
    limit(async () => {
      const random = createRandom(mixSeed("back-off", seed));
      const { timeoutMs, retries, backoffMs } = settings;
      try {
        return await postJson(
          {
            url,
            body: requestBody(settings, messages, seed),
            key,
            timeoutMs,
            retries,
            backoffMs,
            signal,
            maxBytes: MAX_ANSWER_BYTES,
            runtime: { ...runtime, random: () => random.next() },
            about: ` (model ${model})`,
            hint: (status) =>
              (status === 401 || status === 403) && key === undefined
                ? ` No key was sent: set ${apiKeyVariable}.`
                : "",
          },
          readAnswer,
        );
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof UserError) throw new ChatError(error.message);
        throw error;
      }
    }, signal);
}

function readAnswer(json: unknown): string {
  const result = completion.safeParse(json);
  if (!result.success) throw new Error(z.prettifyError(result.error));
  // An answer that was cut off during reasoning has no content: it is still the answer.
  return result.data.choices[0]?.message.content ?? "";
}

function requestBody(
  settings: ChatClientSettings,
  messages: readonly ChatMessage[],
  seed: number,
): object {
  const fields = {
    model: settings.model,
    messages,
    temperature: settings.temperature,
    max_tokens: settings.maxTokens,
    // Many servers take a signed 32-bit number.
    seed: seed & 0x7fffffff,
    ...settings.extra,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

/** Runs work when a slot is free; an abort ends the wait at once. */
type Limiter = <T>(work: () => Promise<T>, signal?: AbortSignal) => Promise<T>;

/** A limiter with `count` slots: the tasks beyond wait in a queue. */
export function limiter(count: number): Limiter {
  let free = count;
  const line = new Set<() => void>();

  const enter = (signal?: AbortSignal): Promise<void> => {
    signal?.throwIfAborted();
    if (free > 0) {
      free--;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const stop = () => {
        line.delete(go);
        reject(signal?.reason);
      };
      const go = () => {
        signal?.removeEventListener("abort", stop);
        resolve();
      };
      line.add(go);
      signal?.addEventListener("abort", stop, { once: true });
    });
  };
  const leave = () => {
    const [next] = line;
    if (next === undefined) {
      free++;
    } else {
      line.delete(next);
      next();
    }
  };

  return async (work, signal) => {
    await enter(signal);
    try {
      return await work();
    } finally {
      leave();
    }
  };
}
