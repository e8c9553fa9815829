/** What our HTTP servers share: bodies with a limit, JSON in and out, errors with a status. */
import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * How long our servers keep a connection for the next request. A request that comes while a
 * connection is being closed has no answer; with Node's own 5 s connections are closed more often.
 */
export const KEEP_ALIVE_MS = 75_000;

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
    asked.on("error", reject);
  });
}

/** The value of a body in JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new HttpError(400, `the body is not JSON: ${(error as Error).message}`);
  }
}

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

const LOCAL = /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?|::ffff:127(\.\d{1,3}){3})$/;

/**
 * Refuses what a web page could send to a server without a key: pages of other sites say where they
 * come from, or reach this machine under a name of their own.
 */
export function refuseWebPages({ headers, socket }: IncomingMessage): void {
  const { origin, host = "" } = headers;
  if (origin !== undefined && !(URL.canParse(origin) && LOCAL.test(new URL(origin).hostname)))
    throw new HttpError(403, `pages of ${origin.slice(0, 200)} are not answered`);
  if (LOCAL.test(socket.localAddress ?? "") && !LOCAL.test(host.replace(/:\d+$/, "")))
    throw new HttpError(
      403,
      "on this machine's own address, only requests to localhost are answered",
    );
}

/** Refuses a body that is not said to be JSON: any web page can send other types. */
export function requireJson({ headers }: IncomingMessage): void {
  const type = headers["content-type"];
  if (!/^application\/json\b/i.test(type ?? ""))
    throw new HttpError(415, `expected content-type: application/json, not ${type ?? "none"}`);
}

/** Memory that the requests of a server share. */
export interface MemoryBudget {
  /** What one request takes, until its answer is sent or its client is gone. */
  lease(reply: ServerResponse): (bytes: number) => void;
}

/** A budget in bytes; who would exceed it is told to come back later. */
export function createBudget(most: number): MemoryBudget {
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
  };
}
