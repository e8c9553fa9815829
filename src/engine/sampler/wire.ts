/** Requests to a server that samples. The key stays in this closure and out of every error. */
import type { z } from "zod";
import { UserError } from "../../errors.js";
import { exchange, keyFrom, postJson, type RetryPolicy } from "../../http-client.js";
import { EngineError } from "../engine.js";

/**
 * The key is in a variable and not a setting, so that it appears in no process list, manifest or
 * log.
 */
export const KEY_VARIABLE = "PAWL_SAMPLER_API_KEY";

/** Requests to a server; every error is an `EngineError` that names it. */
export interface Wire {
  /** The server's address without the API version and secrets. */
  readonly shownUrl: string;
  /** Status and JSON of any answer, to detect the server; POST if there is a body. */
  look(path: string, body?: object): Promise<{ readonly status: number; readonly json: unknown }>;
  /** Posts, with retries, until there is an answer of this form. */
  post<S extends z.ZodType>(path: string, body: object, schema: S): Promise<z.output<S>>;
}

/** Retries for half a minute; an answer may take as long as a batch of long samples. */
const RETRY: RetryPolicy = { timeoutMs: 280_000, retries: 5, backoffMs: 1000 };
const LOOK_MS = 10_000;

/** A connection to the server at this address, with the key from the environment. */
export function createWire(
  url: string,
  retry: Partial<RetryPolicy> = {},
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Wire {
  const base = baseOf(url);
  const shownUrl = base.href.replace(/\/$/, "");
  const key = keyFrom(environment, [KEY_VARIABLE]);
  return {
    shownUrl,
    look: (path, body) =>
      exchange({
        url: shownUrl + path,
        retry: { timeoutMs: LOOK_MS, retries: 0, backoffMs: 0 },
        key,
        init: () => ({
          method: body === undefined ? "GET" : "POST",
          headers: {
            ...(body !== undefined && { "content-type": "application/json" }),
            ...(key !== undefined && { authorization: `Bearer ${key}` }),
          },
          body: body && JSON.stringify(body),
        }),
        judge: ({ status, bytes }) => ({ value: { status, json: jsonOf(bytes.toString()) } }),
        failed: ({ reason }) =>
          new EngineError(
            `no sampler answers at ${shownUrl} (${reason}): check that it is running and that engine.sampler is its address`,
          ),
      }),
    async post(path, body, schema) {
      const request = { ...RETRY, ...retry, url: new URL(shownUrl + path), body, key };
      try {
        return await postJson(request, (answer) => read(schema, answer));
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        throw new EngineError(
          `a request to the sampler failed: ${error.message}. Check its log; resume the run from its last checkpoint with --resume`,
        );
      }
    },
  };
}

function baseOf(url: string): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !["http:", "https:"].includes(parsed.protocol))
    throw new EngineError(
      `engine.sampler must be the address of an engine server, or of a vLLM or SGLang server, such as http://127.0.0.1:8000, but it is ${JSON.stringify(url)}`,
    );
  if (parsed.username !== "" || parsed.password !== "")
    throw new EngineError(
      `engine.sampler must not contain a user name or password; put the key in ${KEY_VARIABLE}`,
    );
  return new URL(parsed.origin + parsed.pathname.replace(/\/+$/, "").replace(/\/v1$/, ""));
}

function read<S extends z.ZodType>(schema: S, answer: unknown): z.output<S> {
  const result = schema.safeParse(answer);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Error(`${issue!.path.join(".") || "it"}: ${issue!.message}`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The caller says what it expected.
    return undefined;
  }
}
