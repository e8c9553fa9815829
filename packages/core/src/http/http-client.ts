/**
 * The shared HTTP client, for servers that may be slow, busy, wrong or gone.
 *
 * Lost connections, time-outs and whatever else the caller considers worth retrying are tried
 * again, with exponential back-off and jitter or after the time given by the server (Retry-After),
 * until the attempts or the time are used up. An answer that is too long is rejected. Redirects are
 * not followed, because a redirected POST would arrive as a GET without its key. A key is removed
 * from every text that could reach an error.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../errors.js";

/** Longer answers are a fault of the server. */
const MAX_ANSWER_BYTES = 2 ** 28;
const MAX_BACKOFF_MS = 60_000;
const MAX_RETRY_AFTER_MS = 300_000;
const MAX_EXCERPT = 200;
/** The connection failed, so the request cannot have arrived. */
const NOT_ARRIVED = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
];

/** How long to wait for a server, and how often to retry. */
export interface RetryPolicy {
  /** Time limit for one answer. */
  readonly timeoutMs: number;
  /** Retries after a failed request. Default: as many as time allows. */
  readonly retries?: number;
  /** How long after the first failure to give up. Default: never, only the retries are limited. */
  readonly giveUpAfterMs?: number;
  /** Delay before the first retry; doubles each time, ±50 %. */
  readonly backoffMs: number;
  /** Maximum delay. Default: a minute. */
  readonly maxBackoffMs?: number;
}

/** An answer as received. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
}

/** A failed attempt, and whether a retry can help. */
export interface Failure {
  readonly reason: string;
  readonly again: boolean;
  /** The delay that the server asked for. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** A request that finally failed. */
interface FinalFailure extends Failure {
  readonly tries: number;
  /** Time since the first failure. */
  readonly awayMs: number;
}

/** What a client needs from the process, so that tests need not wait. */
export interface HttpRuntime {
  wait(ms: number, signal?: AbortSignal): Promise<void>;
  now(): number;
  /** In [0, 1), for the jitter. */
  random(): number;
}

/** A request, how often to make it, and how to interpret its answers. */
export interface Exchange<T> {
  readonly url: URL | string;
  readonly retry: RetryPolicy;
  /** Removed from every text; sending it is up to `init`. */
  readonly key?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Whether to retry it even if it may have arrived. Default true. */
  readonly repeatable?: boolean;
  readonly runtime?: Partial<HttpRuntime>;
  /** Method, headers and body, created again for each attempt. */
  init(): RequestInit | Promise<RequestInit>;
  /**
   * Reads an answer; if it throws, the connection counts as broken. Default: all bytes, up to a
   * limit.
   */
  receive?(response: Response): Promise<Reply>;
  /** Interprets an answer; if it throws, the exchange ends. */
  judge(reply: Reply): { readonly value: T } | Failure;
  /** The error that ends the exchange. */
  failed(failure: FinalFailure): Error;
}

const processRuntime: HttpRuntime = {
  wait: (ms, signal) => sleep(ms, undefined, signal && { signal }),
  now: Date.now,
  random: Math.random,
};

/** Retries until there is a valid answer or the limits are reached. */
export async function exchange<T>(request: Exchange<T>): Promise<T> {
  const { retry, signal } = request;
  const runtime = { ...processRuntime, ...request.runtime };
  // Counted from the first failure: a long poll does not count as absence.
  let since: number | undefined;
  for (let tries = 1; ; tries++) {
    signal?.throwIfAborted();
    const outcome = await attempt(request);
    if ("value" in outcome) return outcome.value;
    const now = performance.now();
    since ??= now;
    const awayMs = now - since;
    const { again, retryAfterMs } = outcome;
    const failure = { ...outcome, reason: redact(outcome.reason, request.key), tries, awayMs };
    const leftMs = (retry.giveUpAfterMs ?? Number.POSITIVE_INFINITY) - awayMs;
    if (!again || tries > (retry.retries ?? Number.POSITIVE_INFINITY) || leftMs <= 0)
      throw request.failed(failure);
    if (leftMs === Number.POSITIVE_INFINITY && (retryAfterMs ?? 0) > MAX_RETRY_AFTER_MS) {
      const asked = `${Math.ceil(retryAfterMs! / 1000)} s`;
      const reason = `${failure.reason}. The server asks to retry in ${asked}, which is longer than the maximum delay (${MAX_RETRY_AFTER_MS / 1000} s)`;
      throw request.failed({ ...failure, reason, again: false });
    }
    const backoffMs = Math.min(
      retry.maxBackoffMs ?? MAX_BACKOFF_MS,
      retry.backoffMs * 2 ** (tries - 1),
    );
    const pauseMs = retryAfterMs ?? backoffMs * (0.5 + runtime.random());
    try {
      await runtime.wait(Math.min(pauseMs, Math.max(1, leftMs)), signal);
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  }
}

async function attempt<T>(request: Exchange<T>): Promise<{ readonly value: T } | Failure> {
  const { url, signal, repeatable = true, receive = (response) => readReply(response) } = request;
  const { timeoutMs } = request.retry;
  const late = AbortSignal.timeout(timeoutMs);
  let reply: Reply;
  try {
    const response = await fetch(url, {
      ...(await request.init()),
      redirect: "manual",
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    });
    // Read here, because a connection may also break during an answer.
    reply = await receive(response);
  } catch (cause) {
    signal?.throwIfAborted();
    const { code, text } = networkReason(cause);
    const reason = late.aborted ? `no answer within ${duration(timeoutMs)}` : text;
    const again = !(cause instanceof TooLong) && (repeatable || NOT_ARRIVED.includes(code));
    return { reason, again, cause };
  }
  return request.judge(reply);
}

class TooLong extends Error {}

/** Status, headers and all bytes of an answer within the size limit. */
export async function readReply(response: Response, maxBytes = MAX_ANSWER_BYTES): Promise<Reply> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > maxBytes) throw new TooLong(`an answer of more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  const { status, headers } = response;
  return { status, headers, bytes: Buffer.concat(chunks) };
}

/** A POST of JSON, and its address. */
export interface JsonRequest extends RetryPolicy {
  readonly url: URL;
  readonly body: unknown;
  /** Sent as a bearer token, and removed from every error. */
  readonly key?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly runtime?: Partial<HttpRuntime>;
  /** What errors say after the address. */
  readonly about?: string;
  /** The longest answer, in bytes. */
  readonly maxBytes?: number;
  /** What errors add after an answer with this status, starting with a blank. */
  hint?(status: number): string;
}

/**
 * Posts JSON and returns the result of `read` on the JSON answer. If `read` throws, the request is
 * retried, as for 408, 429 and 5xx. Other statuses are the caller's mistake.
 */
export function postJson<T>(request: JsonRequest, read: (answer: unknown) => T): Promise<T> {
  const { url, body, key, signal, runtime = {}, about = "" } = request;
  const text = JSON.stringify(body);
  const headers = {
    "content-type": "application/json",
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  };
  return exchange({
    url,
    retry: request,
    key,
    signal,
    runtime,
    init: () => ({ method: "POST", headers, body: text }),
    receive: (response) => readReply(response, request.maxBytes),
    judge: ({ status, headers: came, bytes }) => {
      const excerpt = excerptOf(bytes.toString("utf8"), key);
      if (status >= 200 && status < 300) return readJson(bytes, status, excerpt, read);
      const moved = came.get("location");
      const target = moved === null ? "" : ` Moved to ${moved}: change the address.`;
      return {
        reason: `status ${status}: ${excerpt}${request.hint?.(status) ?? ""}${target}`,
        again: status >= 500 || status === 408 || status === 429,
        retryAfterMs: retryAfterOf(came, runtime.now ?? Date.now),
      };
    },
    failed: ({ reason, again, tries }) => {
      const times = again ? ` ${tries} time${tries === 1 ? "" : "s"}, most recently` : "";
      return new UserError(
        `POST ${url.origin}${url.pathname}${about} failed${times} with ${reason}`,
      );
    },
  });
}

function readJson<T>(
  bytes: Buffer,
  status: number,
  excerpt: string,
  read: (answer: unknown) => T,
): { readonly value: T } | Failure {
  try {
    return { value: read(JSON.parse(bytes.toString("utf8"))) };
  } catch (error) {
    const problem = error instanceof SyntaxError ? "not JSON" : (error as Error).message;
    return { reason: `status ${status}, but ${problem}: ${excerpt}`, again: true };
  }
}

/**
 * The first of these environment variables that holds a key; throws if a header cannot carry it.
 */
export function keyFrom(
  environment: Readonly<Record<string, string | undefined>>,
  names: readonly string[],
): string | undefined {
  for (const name of names) {
    const key = environment[name]?.trim();
    if (key === undefined || key === "") continue;
    // Checked here because fetch's error would contain the whole header.
    if (!/^[\x21-\x7e]+$/.test(key))
      throw new UserError(
        `the key in ${name} contains blanks, line ends or characters outside ASCII, which a header cannot contain; copy it again`,
      );
    return key;
  }
  return undefined;
}

/** A text without the key: servers may echo keys, which users must never see. */
export function redact(text: string, key: string | undefined): string {
  return key === undefined || key === "" ? text : text.replaceAll(key, "[key]");
}

/** The reason that fetch hides in the cause of its "fetch failed". */
export function networkReason(error: unknown): { readonly code: string; readonly text: string } {
  if (!(error instanceof Error)) return { code: "", text: String(error) };
  const cause = error.cause instanceof Error ? error.cause : error;
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : "";
  // If all addresses of a name failed, the error has no text.
  return { code, text: `${code} ${cause.message}`.trim() || cause.name };
}

/** `Retry-After` is a number of seconds or a date. */
export function retryAfterOf(headers: Headers, now: () => number = Date.now): number | undefined {
  const header = headers.get("retry-after")?.trim();
  if (header === undefined) return undefined;
  const ms = /^\d+(\.\d+)?$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

function excerptOf(body: string, key: string | undefined): string {
  // The key is removed first: truncation in its middle would leave half of it.
  const text = redact(body.slice(0, 10_000), key).replace(/\s+/g, " ").trim();
  return text === "" ? "(empty body)" : text.slice(0, MAX_EXCERPT);
}

const duration = (ms: number): string => (ms >= 1000 ? `${ms / 1000} s` : `${ms} ms`);
