/**
 * A client for any OpenAI-compatible `/chat/completions` endpoint, patient with bad servers.
 *
 * Time-outs, lost connections, 408, 429, 5xx and answers that are no answers are tried again, with
 * exponential back-off or after the time the server names. Other 4xx are the caller's mistake and final.
 * The key is read from an environment variable, kept in this closure and taken out of every error.
 */
import { z } from "zod";
import { UserError } from "../../errors.js";
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
export interface ChatRuntime {
  readonly environment: Readonly<Record<string, string | undefined>>;
  wait(ms: number, signal?: AbortSignal): Promise<void>;
  now(): number;
}

/** A problem with a chat endpoint, told to the user as it is. */
export class ChatError extends UserError {
  override readonly name = "ChatError";
}

/** A failed attempt, and whether another can help. */
interface Failure {
  readonly reason: string;
  readonly final: boolean;
  readonly retryAfterMs?: number;
}

const longestBackoffMs = 60_000;
const longestRetryAfterMs = 300_000;

const completion = z.object({
  choices: z
    .array(z.object({ message: z.object({ content: z.string().nullish() }) }))
    .min(1, "no choices"),
});

/** A client for one model. */
export function createChatClient(
  settings: ChatClientSettings,
  runtime: ChatRuntime = processRuntime,
): ChatClient {
  const url = new URL(settings.baseUrl);
  if (url.username !== "" || url.password !== "") {
    throw new ChatError(
      `baseUrl must not carry a user name or password. Put the key into ${settings.apiKeyVariable}.`,
    );
  }
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/chat/completions`;
  const shownUrl = url.origin + url.pathname;
  const key = readKey(settings.apiKeyVariable, runtime);
  const headers = {
    "content-type": "application/json",
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  };
  /** Servers echo keys; what a user sees never does. */
  const shown = (text: string) => (key === undefined ? text : text.replaceAll(key, "[key]"));
  const excerpt = (body: string) => {
    const text = shown(body).replace(/\s+/g, " ").trim();
    return text === "" ? "(empty body)" : text.slice(0, 200);
  };

  async function attempt(body: string, signal: AbortSignal): Promise<string | Failure> {
    // A redirected POST would arrive as a GET without its key: better to show where it was sent.
    const redirect = "manual";
    const response = await fetch(url, { method: "POST", headers, body, signal, redirect });
    const text = await response.text();
    if (!response.ok) {
      const { status } = response;
      const retryAfterMs = parseRetryAfter(response.headers.get("retry-after"), runtime.now());
      const hint =
        (status === 401 || status === 403) && key === undefined
          ? ` No key was sent: set ${settings.apiKeyVariable}.`
          : "";
      const moved = response.headers.get("location");
      const target = moved === null ? "" : ` Moved to ${shown(moved)}: change baseUrl.`;
      return {
        reason: `status ${status}: ${excerpt(text)}${hint}${target}`,
        final: status < 500 && status !== 408 && status !== 429,
        ...(retryAfterMs !== undefined && { retryAfterMs }),
      };
    }
    const json = parseJson(text);
    const result = completion.safeParse(json);
    if (!result.success) {
      const problem = json === undefined ? "no JSON" : z.prettifyError(result.error);
      return {
        reason: `status ${response.status}, but ${problem}: ${excerpt(text)}`,
        final: false,
      };
    }
    // An answer cut off while the model still reasoned has no content: that is its answer.
    return result.data.choices[0]?.message.content ?? "";
  }

  /** As `attempt`, with lost connections and time-outs as failures too. */
  async function attemptInTime(body: string, signal?: AbortSignal): Promise<string | Failure> {
    const controller = new AbortController();
    const stop = () => controller.abort(signal?.reason);
    signal?.addEventListener("abort", stop, { once: true });
    const timer = setTimeout(() => controller.abort(), settings.timeoutMs);
    try {
      return await attempt(body, controller.signal);
    } catch (error) {
      signal?.throwIfAborted();
      const reason = controller.signal.aborted
        ? `no answer within ${settings.timeoutMs} ms`
        : shown(networkReason(error));
      return { reason, final: false };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }

  const limit = limiter(settings.concurrency);

  return (messages, seed, signal) =>
    limit(async () => {
      const body = requestBody(settings, messages, seed);
      const random = createRandom(mixSeed("back-off", seed));
      for (let tries = 1; ; tries++) {
        signal?.throwIfAborted();
        const outcome = await attemptInTime(body, signal);
        if (typeof outcome === "string") return outcome;
        const { reason, final, retryAfterMs } = outcome;
        const failed = `POST ${shownUrl} (model ${settings.model}) failed`;
        if (final) throw new ChatError(`${failed} with ${reason}`);
        if (tries > settings.retries) {
          throw new ChatError(
            `${failed} ${tries} time${tries === 1 ? "" : "s"}, lastly with ${reason}`,
          );
        }
        if (retryAfterMs !== undefined && retryAfterMs > longestRetryAfterMs) {
          throw new ChatError(
            `${failed} with ${reason}. The server asks to come back in ${Math.ceil(retryAfterMs / 1000)} s, which is longer than a rollout waits (${longestRetryAfterMs / 1000} s).`,
          );
        }
        const backoffMs = Math.min(longestBackoffMs, settings.backoffMs * 2 ** (tries - 1));
        await runtime.wait(retryAfterMs ?? backoffMs * (0.5 + random.next()), signal);
      }
    }, signal);
}

function requestBody(
  settings: ChatClientSettings,
  messages: readonly ChatMessage[],
  seed: number,
): string {
  const fields = {
    model: settings.model,
    messages,
    temperature: settings.temperature,
    max_tokens: settings.maxTokens,
    // Many servers take a signed 32-bit number.
    seed: seed & 0x7fffffff,
    ...settings.extra,
  };
  return JSON.stringify(
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)),
  );
}

function readKey(variable: string, runtime: ChatRuntime): string | undefined {
  const key = runtime.environment[variable]?.trim();
  if (key === undefined || key === "") return undefined;
  // Checked here because the error fetch would give contains the whole header.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new ChatError(
      `The key in ${variable} contains blanks, line ends or characters outside ASCII, which a header cannot carry. Copy it again.`,
    );
  }
  return key;
}

/** `Retry-After` is a number of seconds or a date. */
function parseRetryAfter(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d+(\.\d+)?$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The caller reports what came instead.
    return undefined;
  }
}

/** What fetch hides in the cause of its "fetch failed". */
function networkReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? error.cause : error;
  const code = "code" in cause && typeof cause.code === "string" ? `${cause.code} ` : "";
  return `${code}${cause.message}`.trim();
}

const processRuntime: ChatRuntime = {
  environment: process.env,
  now: Date.now,
  wait: (ms, signal) =>
    new Promise((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", stop);
        resolve();
      }, ms);
      if (signal?.aborted) stop();
      else signal?.addEventListener("abort", stop, { once: true });
    }),
};
