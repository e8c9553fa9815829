/** Answers of servers that have models, and what it means that none came. */
import { UserError } from "@pawl/core/errors.js";
import { networkReason } from "@pawl/core/http/http-client.js";

/** Maximum wait for an answer to begin. */
const ANSWER_MS = 30_000;

/** How long to wait, and what to say. */
export interface AnswerOptions {
  /** What to do without network access, for errors. */
  readonly offline: string;
  readonly answerMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A server cannot be reached at all: no network, a firewall, a server that hangs. */
export class Unreachable extends UserError {
  override readonly name = "Unreachable";
}

/** The answer of the server at `endpoint`; only its beginning is subject to a time limit. */
export async function answerOf(
  endpoint: string,
  { offline, answerMs = ANSWER_MS, signal }: AnswerOptions,
  ...[input, init]: Parameters<typeof fetch>
): Promise<Response> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), answerMs);
  try {
    return await fetch(input, {
      ...init,
      signal:
        signal === undefined ? controller.signal : AbortSignal.any([controller.signal, signal]),
    });
  } catch (error) {
    signal?.throwIfAborted();
    const reason = controller.signal.aborted
      ? `no answer within ${answerMs / 1000} s`
      : networkReason(error).text;
    throw new Unreachable(
      `cannot reach ${new URL(endpoint).origin} (${reason}). Without network access, ${offline}.`,
      { cause: error },
    );
  } finally {
    clearTimeout(timer);
  }
}

/** The status of a failed request, if the server answered. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof Error && "statusCode" in error && typeof error.statusCode === "number"
    ? error.statusCode
    : undefined;
}
