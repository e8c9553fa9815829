/** Refused requests, in the form in which OpenAI's API says so. */
import { HttpError } from "@pawl/core/http/http-server.js";
import { TokenizerError } from "@pawl/core/text/tokenizer.js";
import type { Constraints } from "../chat.js";
import { SessionError } from "../session-error.js";

/** What a refusal says besides its message. */
export interface RefusalDetails {
  /** The field at fault. */
  readonly param?: string | undefined;
  readonly code?: string | undefined;
  /** Seconds after which it is worth trying again. */
  readonly retryAfter?: number | undefined;
}

/** A request that is answered with an error. */
export class Refusal extends HttpError {
  constructor(
    status: number,
    message: string,
    readonly details: RefusalDetails = {},
  ) {
    super(status, message);
  }
}

/** What an API calls the parts of a request that a session may refuse. */
export type PartNames = Readonly<Record<keyof Constraints, string>>;

/** The refusal that an error stands for; undefined if it is a fault of the server. */
export function refusalOf(error: unknown, names?: PartNames): Refusal | undefined {
  if (error instanceof Refusal) return error;
  if (error instanceof SessionError && error.part !== undefined) {
    const param = names?.[error.part] ?? error.part;
    return new Refusal(400, `${param}: ${error.problem}`, { param });
  }
  if (error instanceof HttpError)
    return new Refusal(error.status, error.message, {
      code: error.code,
      ...(error.status === 503 && { retryAfter: 1 }),
    });
  // What the session or the chat template does not accept, the client sent.
  if (error instanceof SessionError || error instanceof TokenizerError)
    return new Refusal(400, error.message);
  return undefined;
}

/** The body of a refusal. */
export function errorBody({ status, message, details: { param, code } }: Refusal): object {
  const type =
    status >= 500 ? "server_error" : status === 429 ? "rate_limit_error" : "invalid_request_error";
  return { error: { message, type, param: param ?? null, code: code ?? null } };
}
