/** What our HTTP servers share: bodies with a limit, JSON in and out, errors with a status. */
import type { IncomingMessage, ServerResponse } from "node:http";

/** A rejected request, with its status. */
export class HttpError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The body of a request as text; a longer one is rejected. */
export function readBody(asked: IncomingMessage, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    asked.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      // The rest is read and discarded: closing the connection while the client sends would lose
      // the answer.
      asked.removeAllListeners("data").resume();
      reject(new HttpError(413, `a request has at most ${maxBytes} bytes`));
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
