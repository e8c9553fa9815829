/**
 * Requests to an engine server, through the shared HTTP client.
 *
 * A failed connection and the answers 408, 429, 502, 503 and 504 are retried until the server has
 * been silent for `giveUpAfterMs`. A request that may have arrived is repeated only if the caller
 * says that repeating is harmless. The key stays in this closure and out of every error.
 */

import { EngineError } from "@pawl/core/engine/engine.js";
import {
  exchange,
  type Reply,
  readReply,
  redact,
  retryAfterOf,
} from "@pawl/core/http/http-client.js";

/** Where the server is, and how long to wait for it. */
export interface TransportOptions {
  readonly url: string;
  readonly key?: string | undefined;
  /** How long the server may be silent, in milliseconds. Default: a minute. */
  readonly giveUpAfterMs?: number;
  /** Delay before the first retry; doubles each time up to a few seconds. Default 100. */
  readonly backoffMs?: number;
}

/** How one request is made. */
export interface RequestOptions {
  /** Whether to retry it even if it may have arrived. Default true. */
  readonly repeatable?: boolean;
  readonly signal?: AbortSignal;
  /** Overrides the engine's `giveUpAfterMs` for this request. */
  readonly giveUpAfterMs?: number;
  /** How long the server may take to answer; default two minutes. */
  readonly answerMs?: number;
}

/** An answer of the server: its status and its JSON. */
interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Requests to a server; every error is an `EngineError` that names the server. */
export interface Transport {
  /** The server's address without secrets. */
  readonly shownUrl: string;
  /** The JSON of a successful answer; `accept` lists further statuses that are not errors. */
  get(path: string, options?: RequestOptions): Promise<Answer>;
  post(
    path: string,
    body: unknown,
    options?: RequestOptions & { readonly accept?: readonly number[] },
  ): Promise<Answer>;
  /** Uploads a file, streamed from disk; `open` returns its content again for each attempt. */
  put(path: string, open: () => Promise<Blob>, options?: RequestOptions): Promise<void>;
  /**
   * Downloads a file through `write`, which may be called again; false if the server has no such
   * file.
   */
  download(
    path: string,
    write: (response: Response) => Promise<void>,
    options?: RequestOptions,
  ): Promise<boolean>;
}

/** The server was restarted, or freed the model, and no longer knows what it was asked about. */
class ForgottenError extends EngineError {}

const GIVE_UP_AFTER_MS = 60_000;
const MAX_BACKOFF_MS = 5000;
/** Longer than a server holds a long poll, short enough to notice a dead connection. */
const ANSWER_MS = 120_000;
/** Checkpoints are large, and networks slow. */
const FILE_MS = 6 * 3_600_000;
const TRY_AGAIN = [408, 429, 502, 503, 504];

/** A transport to one server. */
export function createTransport(options: TransportOptions): Transport {
  const base = baseOf(options.url);
  const { key, backoffMs = 100 } = options;
  const shown = (text: string) => redact(text, key);
  const shownUrl = shown(base.origin + base.pathname.replace(/\/+$/, ""));
  const auth: Record<string, string> =
    key === undefined ? {} : { "x-api-key": key, authorization: `Bearer ${key}` };

  /** One answer with any status, after as many attempts as time allows. */
  const ask = (path: string, request: Ask): Promise<Reply> => {
    const { signal, repeatable = true, answerMs = ANSWER_MS, isAnswer = () => false } = request;
    const giveUpAfterMs = request.giveUpAfterMs ?? options.giveUpAfterMs ?? GIVE_UP_AFTER_MS;
    return exchange<Reply>({
      url: `${shownUrl}/api/v1/${path}`,
      retry: { timeoutMs: answerMs, giveUpAfterMs, backoffMs, maxBackoffMs: MAX_BACKOFF_MS },
      key,
      signal,
      repeatable,
      init: request.init,
      receive: request.receive,
      judge: (reply) => {
        const { status, headers, bytes } = reply;
        if (isAnswer(status) || !TRY_AGAIN.includes(status)) return { value: reply };
        const reason = `status ${status}: ${errorOf(bytes, shown)}`;
        return { reason, again: true, retryAfterMs: retryAfterOf(headers) };
      },
      failed: ({ reason, again, tries, awayMs, cause }) =>
        new EngineError(
          again
            ? `the engine server at ${shownUrl} does not answer: ${path} failed ${tries} times in ${(awayMs / 1000).toFixed(1)} s, most recently with ${reason}. Check that it is running and that the address is right (pawl serve engine starts one), then resume from the last checkpoint`
            : `the connection to the engine server at ${shownUrl} broke during ${path} (${reason}), and ${repeatable ? "retrying does not help" : "this server does not recognise a repeated call, so it is unknown whether it was executed"}. Resume from the last checkpoint`,
          { cause },
        ),
    });
  };

  const refuse = ({ status, headers, bytes }: Reply, path: string): never => {
    const text = errorOf(bytes, shown);
    if (status === 404)
      throw new ForgottenError(
        `the engine server at ${shownUrl} answers ${path} with 404: ${text}. Either it was restarted, or it freed the model because it received no heartbeat for too long, or it has no such call. Its checkpoints are still there: resume from the last one`,
      );
    if (status === 401 || status === 403)
      throw new EngineError(
        `the engine server at ${shownUrl} denies access (${status}: ${text}). ${key === undefined ? "No key was sent: set PAWL_API_KEY" : "It does not accept the key that was sent: check PAWL_API_KEY"}`,
      );
    if (status === 400 || status === 422) throw new EngineError(text);
    if (status >= 300 && status < 400)
      throw new EngineError(
        `the engine server at ${shownUrl} answers ${path} with status ${status}, a redirect to ${shown(headers.get("location") ?? "nowhere")}: use its final address`,
      );
    throw new EngineError(
      `the engine server at ${shownUrl} answers ${path} with status ${status}: ${text}`,
    );
  };

  const json = ({ status, bytes }: Reply, path: string): Answer => {
    const text = bytes.toString();
    try {
      const body: unknown = JSON.parse(text);
      if (typeof body === "object" && body !== null && !Array.isArray(body))
        return { status, body: body as Answer["body"] };
    } catch {
      // Reported below, together with what came instead.
    }
    throw new EngineError(
      `the server at ${shownUrl} is not an engine server: ${path} returned ${JSON.stringify(shown(text).slice(0, 100))}, expected a JSON object`,
    );
  };
  const isGood = ({ status }: Reply) => status >= 200 && status < 300;

  return {
    shownUrl,
    async get(path, request = {}) {
      const reply = await ask(path, { ...request, init: () => ({ headers: auth }) });
      return isGood(reply) ? json(reply, path) : refuse(reply, path);
    },
    async post(path, body, { accept = [], ...request } = {}) {
      const text = JSON.stringify(body);
      const headers = { ...auth, "content-type": "application/json", "x-pawl-binary": "1" };
      const init = () => ({ method: "POST", headers, body: text });
      const isAnswer = (status: number) => accept.includes(status);
      const reply = await ask(path, { ...request, init, isAnswer });
      return isGood(reply) || isAnswer(reply.status) ? json(reply, path) : refuse(reply, path);
    },
    async put(path, open, request = {}) {
      const headers = { ...auth, "content-type": "application/octet-stream" };
      const init = async () => ({ method: "PUT", headers, body: await open() });
      const reply = await ask(path, { ...request, init, answerMs: FILE_MS });
      if (!isGood(reply)) refuse(reply, path);
    },
    async download(path, write, request = {}) {
      const reply = await ask(path, {
        ...request,
        answerMs: FILE_MS,
        init: () => ({ headers: auth }),
        receive: async (response) => {
          if (!response.ok) return readReply(response);
          await write(response);
          const { status, headers } = response;
          return { status, headers, bytes: Buffer.alloc(0) };
        },
      });
      if (reply.status === 404) return false;
      return isGood(reply) ? true : refuse(reply, path);
    },
  };
}

/** How to make a request, and which of its answers are accepted with any status. */
interface Ask extends RequestOptions {
  readonly init: () => RequestInit | Promise<RequestInit>;
  readonly isAnswer?: (status: number) => boolean;
  readonly receive?: (response: Response) => Promise<Reply>;
}

function baseOf(url: string): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !["http:", "https:"].includes(parsed.protocol))
    throw new EngineError(
      `${JSON.stringify(url)} is not the address of an engine server; expected one like http://127.0.0.1:8000`,
    );
  if (parsed.username !== "" || parsed.password !== "")
    throw new EngineError(
      "the engine server's address must not contain a user name or password; put the key in PAWL_API_KEY",
    );
  return parsed;
}

/**
 * The error message of a server: `error` from ours, `detail` from SkyRL, otherwise the text itself.
 */
function errorOf(bytes: Buffer, shown: (text: string) => string): string {
  const text = bytes.toString();
  let message: unknown = text;
  try {
    const body = JSON.parse(text) as Readonly<Record<string, unknown>>;
    message = body.error ?? body.detail ?? text;
  } catch {
    // A proxy's page is shown as it is.
  }
  const line = shown(typeof message === "string" ? message : JSON.stringify(message));
  return line === "" ? "(empty answer)" : line.slice(0, 2000);
}
