/** A chat endpoint for tests that behaves as badly as told, over real sockets. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What the server received. */
interface ReceivedRequest {
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: {
    readonly model: string;
    readonly seed?: number;
    readonly messages: readonly { readonly role: string; readonly content: string }[];
  };
}

/** Answers one request. */
export type Behaviour = (response: ServerResponse, request: ReceivedRequest) => void;

/** Answers as a model would, with this content. */
export function says(content: string | null): Behaviour {
  return (response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ choices: [{ message: { role: "assistant", content } }] }));
  };
}

/** Answers with a status, a body and headers. */
export function fails(
  status: number,
  body = "",
  headers: Readonly<Record<string, string>> = {},
): Behaviour {
  return (response) => {
    response.writeHead(status, headers);
    response.end(body);
  };
}

/** Starts a server that goes through the behaviours and then repeats the last one. */
export async function startChatServer(...behaviours: readonly Behaviour[]) {
  const received: ReceivedRequest[] = [];
  let arrived: () => void = () => undefined;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString());
      const one = { url: request.url, headers: request.headers, body };
      const behave = behaviours[Math.min(received.length, behaviours.length - 1)];
      received.push(one);
      behave?.(response, one);
      arrived();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    received,
    /** Resolves when the next request has come in. */
    nextRequest: () =>
      new Promise<void>((resolve) => {
        arrived = resolve;
      }),
    close: () => {
      server.closeAllConnections();
      return new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}
