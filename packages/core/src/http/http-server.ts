/** What our HTTP servers share: bodies with a limit, JSON in and out, errors with a status. */
import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * How long our servers keep a connection for the next request. A request that comes while a
 * connection is being closed has no answer; with Node's own 5 s connections are closed more often.
 */
const KEEP_ALIVE_MS = 75_000;

/** How long clients of our servers may take: for the headers of a request, and for all of it. */
export const CLIENT_TIMES = {
  headersTimeout: 20_000,
  requestTimeout: 60_000,
  keepAliveTimeout: KEEP_ALIVE_MS,
} as const;

/** A rejected request, with its status. */
export class HttpError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** A short name of the reason, for programs. */
    readonly code?: string,
  ) {
    super(message);
  }
}

/** The path of a request, and its query, as they were sent. */
export function addressOf({ url = "/" }: IncomingMessage): readonly [path: string, query: string] {
  const mark = url.indexOf("?");
  return mark < 0 ? [url, ""] : [url.slice(0, mark), url.slice(mark + 1)];
}

/** The path of a request without slashes at its end; in one pass, because anybody may ask. */
export function pathOf(asked: IncomingMessage): string {
  const [path] = addressOf(asked);
  let end = path.length;
  while (end > 1 && path[end - 1] === "/") end--;
  return path.slice(0, end);
}

/** The body of a request as text; a longer one is rejected. `take` is told of every piece. */
export function readBody(
  asked: IncomingMessage,
  maxBytes: number,
  take: (bytes: number) => void = () => undefined,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    asked.on("data", (chunk: Buffer) => {
      size += chunk.length;
      try {
        if (size > maxBytes) throw new HttpError(413, `a request has at most ${maxBytes} bytes`);
        take(chunk.length);
        chunks.push(chunk);
      } catch (error) {
        // The rest is read and discarded: closing the connection while the client sends would lose
        // the answer.
        asked.removeAllListeners("data").resume();
        reject(error as Error);
      }
    });
    asked.on("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
    // The client has left: no fault of the server's.
    asked.on("error", () => reject(new HttpError(400, "the request ended early")));
  });
}

/** How a body is read. */
export interface BodyRule {
  readonly maxBytes: number;
  /** What the body takes of a budget. */
  readonly take?: ((bytes: number) => void) | undefined;
  /** What stands for no body at all; without it one is required. */
  readonly missing?: unknown;
}

/** The JSON of a body. Another content type is refused: any web page can send those. */
export async function readJson(asked: IncomingMessage, rule: BodyRule): Promise<unknown> {
  const type = asked.headers["content-type"];
  const text = await readBody(asked, rule.maxBytes, rule.take);
  if (text === "" && type === undefined && rule.missing !== undefined) return rule.missing;
  if (!/^application\/json\b/i.test(type ?? ""))
    throw new HttpError(415, `expected content-type: application/json, not ${type ?? "none"}`);
  return parseJson(text);
}

/** Lists and objects that may stand inside each other: what walks values would run out of stack. */
const MOST_LEVELS = 500;

/** The value of a body in JSON. */
export function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new HttpError(400, `the body is not JSON: ${(error as Error).message}`);
  }
  if (levelsOf(text) > MOST_LEVELS)
    throw new HttpError(
      400,
      `the body has more than ${MOST_LEVELS} lists or objects inside each other`,
    );
  return value;
}

/** How many lists and objects stand inside each other in some JSON. */
function levelsOf(json: string): number {
  let [level, most] = [0, 0];
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      while (json.charCodeAt(++at) !== QUOTE) if (json.charCodeAt(at) === BACKSLASH) at++;
    } else if (code === BRACKET || code === BRACE) most = Math.max(most, ++level);
    else if (code === BRACKET + 2 || code === BRACE + 2) level--;
  }
  return most;
}
const [QUOTE, BACKSLASH, BRACKET, BRACE] = [0x22, 0x5c, 0x5b, 0x7b];

/** Answers with JSON. */
export function sendJson(
  reply: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = JSON.stringify(body);
  reply.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    ...headers,
  });
  reply.end(text);
}

/** Memory that the requests of a server share. */
export interface MemoryBudget {
  /** What one request takes, until its answer is sent or its client is gone. */
  lease(reply: ServerResponse): (bytes: number) => void;
  /** Takes some until it is given back; undefined if others have too much. */
  hold(bytes: number): (() => void) | undefined;
}

/** Bytes of requests and answers that are in memory at once, unless a server needs more. */
export const USUAL_BUDGET = 2 ** 27;

/** A budget in bytes; who would exceed it is told to come back later. One request always fits. */
export function createBudget(most = USUAL_BUDGET): MemoryBudget {
  let used = 0;
  return {
    lease(reply) {
      let own = 0;
      reply.once("close", () => {
        used -= own;
        own = 0;
      });
      return (bytes) => {
        if (used + bytes > most && used > own)
          throw new HttpError(503, "the server is busy with other requests: try again later");
        if (reply.destroyed) return;
        used += bytes;
        own += bytes;
      };
    },
    hold(bytes) {
      if (used + bytes > most && used > 0) return undefined;
      used += bytes;
      return () => {
        used -= bytes;
      };
    },
  };
}
