import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type JsonRequest, postJson } from "./post-json.js";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** A server on a free port of this machine. */
async function serve(listener: RequestListener): Promise<URL> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/x`);
}

const request = (url: URL, more: Partial<JsonRequest> = {}): JsonRequest => ({
  url,
  body: { a: "ü" },
  timeoutMs: 5000,
  retries: 2,
  backoffMs: 1,
  ...more,
});

describe("a JSON request", () => {
  it("sends JSON with its key and reads JSON", async () => {
    const url = await serve((asked, reply) => {
      asked.setEncoding("utf8").on("data", (body) => {
        reply.end(JSON.stringify({ body, key: asked.headers.authorization }));
      });
    });
    expect(await postJson(request(url, { key: "k1" }), (json) => json)).toEqual({
      body: '{"a":"ü"}',
      key: "Bearer k1",
    });
  });

  it("tries again after what may pass, and takes the answer that comes", async () => {
    const faults: RequestListener[] = [
      (_, reply) => reply.writeHead(503).end("busy"),
      (asked) => asked.socket.destroy(),
      (_, reply) => reply.end('{"right": tru'),
      (_, reply) => reply.end('{"right": false}'),
      (_, reply) => reply.end('{"right": true}'),
    ];
    let at = 0;
    const url = await serve((asked, reply) => faults[at++]!(asked, reply));
    const right = await postJson(request(url, { retries: 4 }), (json) => {
      if (!(json as { right: boolean }).right) throw new Error("wrong");
      return "right";
    });
    expect([right, at]).toEqual(["right", 5]);
  });

  it("does not try again after the caller's mistake, and hides the key", async () => {
    let asked = 0;
    const url = await serve((request, reply) => {
      asked++;
      reply.writeHead(401).end(`bad ${request.headers.authorization}`);
    });
    await expect(postJson(request(url, { key: "k-secret" }), String)).rejects.toThrow(
      /^POST http:\/\/127.0.0.1:\d+\/x failed 1 time, lastly with status 401: bad Bearer \[key\]$/,
    );
    expect(asked).toBe(1);
  });

  it("gives up with the last reason: silence, nobody there, no JSON", async () => {
    const silent = await serve(() => undefined);
    await expect(postJson(request(silent, { timeoutMs: 30, retries: 1 }), String)).rejects.toThrow(
      "failed 2 times, lastly with no answer within 30 ms",
    );
    const slow = await serve((_, reply) => reply.write("{"));
    await expect(postJson(request(slow, { timeoutMs: 50, retries: 0 }), String)).rejects.toThrow(
      "failed 1 time, lastly with no answer within 50 ms",
    );
    const page = await serve((_, reply) => reply.end("<html>"));
    await expect(postJson(request(page), String)).rejects.toThrow(
      "failed 3 times, lastly with an answer that is none (no JSON): <html>",
    );
    const gone = await serve(() => undefined);
    servers.pop()!.close();
    await expect(postJson(request(gone), String)).rejects.toThrow(/3 times, lastly with ECONN/);
  });

  it("stops at once when it is told to", async () => {
    const silent = await serve(() => undefined);
    const controller = new AbortController();
    const waiting = postJson(request(silent, { signal: controller.signal }), String);
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });
});
