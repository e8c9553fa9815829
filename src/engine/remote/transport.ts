/**
 * Requests to an engine server, patient with a network that is not.
 *
 * A failed connection and the answers 408, 429, 502, 503 and 504 are tried again with exponential back-off
 * until the server has not answered at all for `patienceMs`. A request that may have arrived is repeated only
 * where the caller says that repeating does no harm. The key stays in this closure and out of every error.
 */
import { setTimeout as wait } from "node:timers/promises";
import { EngineError } from "../engine.js";

/** Where the server is, and how patient to be with it. */
export interface TransportOptions {
  readonly url: string;
  readonly key?: string | undefined;
  /** How long the server may stay away, in milliseconds. Default a minute. */
  readonly patienceMs?: number;
  /** Wait before the first repetition; doubles each time up to a few seconds. Default 100. */
  readonly backoffMs?: number;
}

/** How one request is made. */
export interface RequestOptions {
  /** Whether it may be sent again when it may have arrived; default true. */
  readonly repeatable?: boolean;
  readonly signal?: AbortSignal;
  /** How long the server may stay away this time. */
  readonly patienceMs?: number;
}

/** An answer of the server: its status and its JSON. */
export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** What is asked of a server; every error is an `EngineError` that names the server. */
export interface Transport {
  /** The server's address, fit to be shown. */
  readonly shownUrl: string;
  /** The JSON of a successful answer; `accept` lists further statuses that are answers and no errors. */
  get(path: string, options?: RequestOptions): Promise<Answer>;
  post(
    path: string,
    body: unknown,
    options?: RequestOptions & { readonly accept?: readonly number[] },
  ): Promise<Answer>;
  /** Sends a file, read from the disk as it goes; `open` gives its content anew for each attempt. */
  put(path: string, open: () => Promise<Blob>, options?: RequestOptions): Promise<void>;
  /** Copies a file through `write`, which may be called again; false where the server has none by that name. */
  download(
    path: string,
    write: (response: Response) => Promise<void>,
    options?: RequestOptions,
  ): Promise<boolean>;
}

/** The server was restarted, or freed the model: what it was asked about it no longer knows. */
export class ForgottenError extends EngineError {}

const DEFAULT_PATIENCE_MS = 60_000;
const LONGEST_BACKOFF_MS = 5000;
/** Longer than a server holds a long poll, shorter than a dead connection goes unnoticed. */
const ANSWER_MS = 120_000;
/** Checkpoints are large, and networks slow. */
const FILE_MS = 6 * 3_600_000;
const TRY_AGAIN = [408, 429, 502, 503, 504];
/** The connection could not be made, so that the request cannot have arrived. */
const NOT_ARRIVED = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
];

/** The key of the environment, by default from our variable, then Tinker's. */
export function keyOf(
  environment: Readonly<Record<string, string | undefined>>,
  names: readonly string[] = ["PAWL_API_KEY", "TINKER_API_KEY"],
) {
  for (const name of names) {
    const key = environment[name]?.trim();
    if (key === undefined || key === "") continue;
    // Checked here because the error fetch would give contains the whole header.
    if (!/^[\x21-\x7e]+$/.test(key))
      throw new EngineError(
        `the key in ${name} contains blanks, line ends or characters outside ASCII, which a header cannot carry; copy it again`,
      );
    return key;
  }
  return undefined;
}

/** A transport to one server. */
export function createTransport(options: TransportOptions): Transport {
  const base = baseOf(options.url);
  const { key, backoffMs = 100 } = options;
  const shown = (text: string) => (key === undefined ? text : text.replaceAll(key, "[key]"));
  const shownUrl = shown(base.origin + base.pathname.replace(/\/+$/, ""));
  const auth: Record<string, string> =
    key === undefined ? {} : { "x-api-key": key, authorization: `Bearer ${key}` };

  /** One answer, whatever its status, after as many attempts as patience allows. */
  const ask = async (
    path: string,
    init: () => RequestInit | Promise<RequestInit>,
    { repeatable = true, signal, ...request }: RequestOptions & { readonly answerMs?: number },
    isAnswer: (status: number) => boolean = () => false,
  ): Promise<Reply> => {
    const patienceMs = request.patienceMs ?? options.patienceMs ?? DEFAULT_PATIENCE_MS;
    // From the first failure on: a poll that was held for long was no absence.
    let since: number | undefined;
    for (let tries = 0; ; tries++) {
      let reason: string;
      try {
        const timeout = AbortSignal.timeout(request.answerMs ?? ANSWER_MS);
        const response = await fetch(`${shownUrl}/api/v1/${path}`, {
          ...(await init()),
          redirect: "manual",
          signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
        });
        const { status } = response;
        const location = response.headers.get("location");
        // Read here, because a connection may also break in the middle of an answer.
        const bytes = Buffer.from(await response.arrayBuffer());
        if (isAnswer(status) || !TRY_AGAIN.includes(status)) return { status, location, bytes };
        reason = `status ${status}: ${errorOf(bytes, shown)}`;
      } catch (error) {
        signal?.throwIfAborted();
        const { code, text } = networkReason(error);
        reason = shown(text);
        if (!repeatable && !NOT_ARRIVED.includes(code))
          throw new EngineError(
            `the connection to the engine server at ${shownUrl} broke in the middle of ${path} (${reason}), and this server does not recognise a repeated call: whether it was carried out is not known. Go on from the last checkpoint`,
            { cause: error },
          );
      }
      since ??= performance.now();
      const away = performance.now() - since;
      if (away >= patienceMs)
        throw new EngineError(
          `the engine server at ${shownUrl} does not answer: ${path} failed ${tries + 1} times in ${(away / 1000).toFixed(1)} s, lastly with ${reason}. See whether it runs and whether the address is right (pawl serve engine starts one), then go on from the last checkpoint`,
        );
      const pause = Math.min(LONGEST_BACKOFF_MS, backoffMs * 2 ** tries) * (0.5 + Math.random());
      await wait(Math.min(pause, Math.max(1, patienceMs - away)), undefined, {
        ...(signal !== undefined && { signal }),
      });
    }
  };

  const refuse = ({ status, location, bytes }: Reply, path: string): never => {
    const text = errorOf(bytes, shown);
    if (status === 404)
      throw new ForgottenError(
        `the engine server at ${shownUrl} answers ${path} with 404: ${text}. Either it was restarted, or it freed the model because it heard nothing from us for too long, or it has no such call. Its checkpoints are still there: go on from the last one`,
      );
    if (status === 401 || status === 403)
      throw new EngineError(
        `the engine server at ${shownUrl} refuses us (${status}: ${text}). ${key === undefined ? "No key was sent: set PAWL_API_KEY" : "The key that was sent is not one of its own: see PAWL_API_KEY"}`,
      );
    if (status === 400 || status === 422) throw new EngineError(text);
    if (status >= 300 && status < 400)
      throw new EngineError(
        `the engine server at ${shownUrl} answers ${path} with status ${status}, a redirection to ${shown(location ?? "nowhere")}: use the address it is really at`,
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
      // Told below, with what came instead.
    }
    throw new EngineError(
      `what answers at ${shownUrl} is no engine server: ${path} gave ${JSON.stringify(shown(text).slice(0, 100))}, expected a JSON object`,
    );
  };
  const isGood = ({ status }: Reply) => status >= 200 && status < 300;

  return {
    shownUrl,
    async get(path, request = {}) {
      const reply = await ask(path, () => ({ headers: auth }), request);
      return isGood(reply) ? json(reply, path) : refuse(reply, path);
    },
    async post(path, body, { accept = [], ...request } = {}) {
      const text = JSON.stringify(body);
      const headers = { ...auth, "content-type": "application/json", "x-pawl-binary": "1" };
      const init = () => ({ method: "POST", headers, body: text });
      const reply = await ask(path, init, request, (status) => accept.includes(status));
      return isGood(reply) || accept.includes(reply.status)
        ? json(reply, path)
        : refuse(reply, path);
    },
    async put(path, open, request = {}) {
      const headers = { ...auth, "content-type": "application/octet-stream" };
      const init = async () => ({ method: "PUT", headers, body: await open() });
      const reply = await ask(path, init, { ...request, answerMs: FILE_MS });
      if (!isGood(reply)) refuse(reply, path);
    },
    async download(path, write, request = {}) {
      const patienceMs = request.patienceMs ?? options.patienceMs ?? DEFAULT_PATIENCE_MS;
      const deadline = performance.now() + patienceMs;
      for (;;) {
        try {
          const response = await fetch(`${shownUrl}/api/v1/${path}`, {
            headers: auth,
            redirect: "manual",
            signal: AbortSignal.timeout(FILE_MS),
          });
          if (response.ok) {
            await write(response);
            return true;
          }
          const { status } = response;
          const reply = {
            status,
            location: null,
            bytes: Buffer.from(await response.arrayBuffer()),
          };
          return status === 404 ? false : refuse(reply, path);
        } catch (error) {
          if (error instanceof EngineError) throw error;
          if (performance.now() >= deadline)
            throw new EngineError(
              `${path} could not be copied from the engine server at ${shownUrl}: ${shown(networkReason(error).text)}`,
              { cause: error },
            );
          await wait(Math.min(LONGEST_BACKOFF_MS, 10 * backoffMs));
        }
      }
    },
  };
}

/** An answer as it came. */
interface Reply {
  readonly status: number;
  readonly location: string | null;
  readonly bytes: Buffer;
}

function baseOf(url: string): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !["http:", "https:"].includes(parsed.protocol))
    throw new EngineError(
      `${JSON.stringify(url)} is no address of an engine server; expected one like http://127.0.0.1:8000`,
    );
  if (parsed.username !== "" || parsed.password !== "")
    throw new EngineError(
      "the engine server's address must not carry a user name or password; put the key into PAWL_API_KEY",
    );
  return parsed;
}

/** What a server says went wrong: `error` from ours, `detail` from SkyRL, otherwise the text itself. */
function errorOf(bytes: Buffer, shown: (text: string) => string): string {
  const text = bytes.toString();
  let said: unknown = text;
  try {
    const body = JSON.parse(text) as Readonly<Record<string, unknown>>;
    said = body.error ?? body.detail ?? text;
  } catch {
    // A proxy's page: shown as it is.
  }
  const line = shown(typeof said === "string" ? said : JSON.stringify(said));
  return line === "" ? "(empty answer)" : line.slice(0, 2000);
}

/** What fetch hides in the cause of its "fetch failed". */
function networkReason(error: unknown): { readonly code: string; readonly text: string } {
  if (!(error instanceof Error)) return { code: "", text: String(error) };
  if (error.name === "TimeoutError")
    return { code: "TIMEOUT", text: `no answer in ${ANSWER_MS / 1000} s` };
  const cause = error.cause instanceof Error ? error.cause : error;
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : "";
  // Several addresses of one name that all failed come as one error without a text.
  return { code, text: `${code} ${cause.message}`.trim() };
}
