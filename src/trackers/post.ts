/** One request to a tracker: tried once, because whoever follows a run tries again later. */
import { UserError } from "../errors.js";
import { exchange } from "../http-client.js";

const TIMEOUT_MS = 30_000;

/** A tracker that did not take what was sent. */
export class TrackerError extends UserError {
  override readonly name = "TrackerError";
  /** Whether it may take the same later. */
  readonly again: boolean;
  constructor(message: string, again: boolean) {
    super(message);
    this.again = again;
  }
}

/** A request, what is secret about it, and how to read its answer. */
export interface Posting<T> {
  readonly url: URL;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Removed from every error. */
  readonly key?: string | undefined;
  readonly signal: AbortSignal;
  /** Reads the JSON of an answer; statuses other than 2xx are errors unless listed in `accept`. */
  read(answer: unknown, status: number): T;
  readonly accept?: readonly number[];
}

/** Posts JSON, or gets if there is no body. */
export function post<T>({ url, body, headers = {}, key, signal, read, accept = [] }: Posting<T>) {
  const method = body === undefined ? "GET" : "POST";
  const where = `${method} ${url.origin}${url.pathname}`;
  return exchange<T>({
    url,
    key,
    signal,
    retry: { timeoutMs: TIMEOUT_MS, retries: 0, backoffMs: 0 },
    init: () => ({
      method,
      headers: { "content-type": "application/json", ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    }),
    judge({ status, bytes }) {
      const text = bytes.toString("utf8");
      const said = text.replace(/\s+/g, " ").slice(0, 300);
      if ((status < 200 || status >= 300) && !accept.includes(status))
        return {
          reason: `status ${status}: ${said}`,
          again: status >= 500 || status === 408 || status === 429,
        };
      try {
        return { value: read(JSON.parse(text), status) };
      } catch (error) {
        if (error instanceof TrackerError) throw error;
        return { reason: `an answer that was not expected: ${said}`, again: false };
      }
    },
    failed: ({ reason, again }) => new TrackerError(`${where} failed with ${reason}`, again),
  });
}

/** The address of a server; secrets in it are refused, because addresses are recorded. */
export function serverUrl(where: string, secret: string): URL {
  let url: URL;
  try {
    url = new URL(where);
  } catch {
    throw new UserError(`expected an address such as http://127.0.0.1:7860, got "${where}"`);
  }
  if (!/^https?:$/.test(url.protocol))
    throw new UserError(`expected http:// or https://, got "${where}"`);
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    throw new UserError(
      `expected an address without a user name, a password or what follows a question mark, because it is recorded: put a token into ${secret}`,
    );
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}
