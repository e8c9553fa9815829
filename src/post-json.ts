/**
 * One JSON request to a server that may be slow, busy, wrong or gone.
 *
 * Time-outs, lost connections, 408, 429, 5xx and answers that are no answers are tried again, each time
 * after twice the wait. Other 4xx are the caller's mistake and final. All failures end in one error that
 * names the address, the number of attempts and the last reason.
 */
import { setTimeout as wait } from "node:timers/promises";
import { UserError } from "./errors.js";

/** Longer answers are a fault of the server. */
const MOST_BYTES = 2 ** 28;

/** How patient to be with a server. */
export interface Patience {
  /** Longest wait for one answer. */
  readonly timeoutMs: number;
  /** Further attempts after the first has failed. */
  readonly retries: number;
  /** Wait before the first further attempt; doubles each time. */
  readonly backoffMs: number;
}

/** What to send, and to whom. */
export interface JsonRequest extends Patience {
  readonly url: URL;
  readonly body: unknown;
  /** Sent as a bearer token, and taken out of every error. */
  readonly key?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A failed attempt, and whether another can help. */
interface Failure {
  readonly reason: string;
  readonly final: boolean;
}

/** Posts JSON and returns what `read` makes of the JSON that comes back; `read` throws where it is not as expected. */
export async function postJson<T>(request: JsonRequest, read: (answer: unknown) => T): Promise<T> {
  const { url, retries, backoffMs, signal } = request;
  for (let tries = 1; ; tries++) {
    signal?.throwIfAborted();
    const outcome = await attempt(request, read);
    if ("value" in outcome) return outcome.value;
    const reason = request.key ? outcome.reason.replaceAll(request.key, "[key]") : outcome.reason;
    if (outcome.final || tries > retries) {
      const times = `${tries} time${tries === 1 ? "" : "s"}`;
      throw new UserError(
        `POST ${url.origin}${url.pathname} failed ${times}, lastly with ${reason}`,
      );
    }
    await wait(backoffMs * 2 ** (tries - 1), undefined, signal && { signal });
  }
}

async function attempt<T>(
  request: JsonRequest,
  read: (answer: unknown) => T,
): Promise<{ readonly value: T } | Failure> {
  const { url, body, key, timeoutMs, signal } = request;
  const late = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify(body),
      // A redirected POST would arrive as a GET: better to show where it was sent.
      redirect: "manual",
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    });
    const text = await readText(response);
    if (!response.ok) {
      const { status } = response;
      const final = status < 500 && status !== 408 && status !== 429;
      return { reason: `status ${status}: ${excerpt(text)}`, final };
    }
    return parse(text, read);
  } catch (error) {
    signal?.throwIfAborted();
    const reason = late.aborted ? `no answer within ${timeoutMs} ms` : networkReason(error);
    return { reason, final: false };
  }
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MOST_BYTES) throw new Error(`an answer of more than ${MOST_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parse<T>(text: string, read: (answer: unknown) => T): { readonly value: T } | Failure {
  try {
    return { value: read(JSON.parse(text)) };
  } catch (error) {
    const problem = error instanceof SyntaxError ? "no JSON" : (error as Error).message;
    return { reason: `an answer that is none (${problem}): ${excerpt(text)}`, final: false };
  }
}

function excerpt(body: string): string {
  const text = body.slice(0, 1000).replace(/\s+/g, " ").trim();
  return text === "" ? "(empty body)" : text.slice(0, 200);
}

/** What fetch hides in the cause of its "fetch failed". */
function networkReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? error.cause : error;
  const code = "code" in cause && typeof cause.code === "string" ? `${cause.code} ` : "";
  return `${code}${cause.message}`.trim() || cause.name;
}
