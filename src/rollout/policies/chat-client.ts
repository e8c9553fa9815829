/**
 * A client for any OpenAI-compatible `/chat/completions` endpoint; `http-client.ts` says what is tried
 * again. The key is read from an environment variable, kept in this closure and taken out of every
 * error. The jitter of the back-off comes from the seed of the question.
 */
import { z } from "zod";
import { UserError } from "../../errors.js";
import { type HttpRuntime, keyFrom, postJson } from "../../http-client.js";
import { createRandom, mixSeed } from "../../random.js";
import type { ChatMessage } from "../../text/tokenizer.js";
import { limiter } from "./limiter.js";

/** Settings of the connection. */
export const chatClientOptions = z.strictObject({
  baseUrl: z
    .url({ protocol: /^https?$/ })
    .describe(
      "address of the API up to and with its version, for example http://localhost:8000/v1",
    ),
  model: z.string().min(1).describe("name of the model, as the server knows it"),
  apiKeyVariable: z
    .string()
    .default("OPENAI_API_KEY")
    .describe("environment variable that holds the key; unset: no key is sent"),
  temperature: z.number().min(0).default(0.4).describe("sampling temperature"),
  maxTokens: z.int().min(1).default(512).describe("longest answer, in tokens"),
  extra: z
    .record(z.string(), z.unknown())
    .default({})
    .describe("further fields of every request; null leaves a field out"),
  concurrency: z.int().min(1).default(8).describe("requests under way at a time"),
  timeoutMs: z.number().positive().default(120_000).describe("longest wait for one answer"),
  retries: z.int().min(0).default(5).describe("further attempts after the first has failed"),
  backoffMs: z
    .number()
    .min(0)
    .default(500)
    .describe("wait before the first further attempt; doubles each time, plus or minus half"),
});

/** Settings of the connection, with defaults filled in. */
export type ChatClientSettings = z.output<typeof chatClientOptions>;

/** Answers a dialogue. */
export type ChatClient = (
  messages: readonly ChatMessage[],
  seed: number,
  signal?: AbortSignal,
) => Promise<string>;

/** What a client needs of the process, so that tests need not wait. */
export interface ChatRuntime extends Partial<HttpRuntime> {
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** A problem with a chat endpoint, told to the user as it is. */
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
  const url = new URL(settings.baseUrl);
  if (url.username !== "" || url.password !== "") {
    throw new ChatError(
      `baseUrl must not carry a user name or password. Put the key into ${settings.apiKeyVariable}.`,
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
  // An answer cut off while the model still reasoned has no content: that is its answer.
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
