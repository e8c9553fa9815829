import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type Exchange, exchange, type JsonRequest, postJson, readReply } from "./http-client.js";

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
  timeoutMs: 60_000,
  retries: 2,
  backoffMs: 1,
  ...more,
});

describe("a JSON request", () => {
  it("waits as long as the server asks for", async () => {
    const waits: number[] = [];
    const runtime = { wait: async (ms: number) => void waits.push(ms), random: () => 0.5 };
    let asked = 0;
    const url = await serve((_, reply) => {
      if (asked++ === 0) reply.writeHead(429, { "retry-after": "7" }).end();
      else if (asked === 2) reply.writeHead(500).end();
      else reply.end("1");
    });
    expect(await postJson(request(url, { runtime }), Number)).toBe(1);
    expect(waits).toEqual([7000, 2]);
  });

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

  it("retries temporary failures, and returns the answer that comes", async () => {
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

  it("does not retry after the caller's mistake, and hides the key", async () => {
    let asked = 0;
    const url = await serve((request, reply) => {
      asked++;
      reply.writeHead(401).end(`bad ${request.headers.authorization}`);
    });
    await expect(postJson(request(url, { key: "k-secret" }), String)).rejects.toThrow(
      /^POST http:\/\/127.0.0.1:\d+\/x failed with status 401: bad Bearer \[key\]$/,
    );
    expect(asked).toBe(1);
  });

  it("gives up with the last reason: no answer, no server, not JSON", async () => {
    const silent = await serve(() => undefined);
    await expect(postJson(request(silent, { timeoutMs: 30, retries: 1 }), String)).rejects.toThrow(
      "failed 2 times, most recently with no answer within 30 ms",
    );
    const slow = await serve((_, reply) => reply.write("{"));
    await expect(postJson(request(slow, { timeoutMs: 50, retries: 0 }), String)).rejects.toThrow(
      "failed 1 time, most recently with no answer within 50 ms",
    );
    const page = await serve((_, reply) => reply.end("<html>"));
    await expect(postJson(request(page), String)).rejects.toThrow(
      "failed 3 times, most recently with status 200, but not JSON: <html>",
    );
    const gone = await serve(() => undefined);
    servers.pop()!.close();
    await expect(postJson(request(gone), String)).rejects.toThrow(
      /3 times, most recently with ECONN/,
    );
  });

  it("stops at once when aborted", async () => {
    const silent = await serve(() => undefined);
    const controller = new AbortController();
    const waiting = postJson(request(silent, { signal: controller.signal }), String);
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });
});

describe("an exchange", () => {
  const retry = { timeoutMs: 60_000, retries: 2, backoffMs: 1 };
  const ask = (url: URL, more: Partial<Exchange<number>> = {}) =>
    exchange({
      url,
      retry,
      init: () => ({}),
      judge: ({ status }) => (status < 300 ? { value: status } : { reason: "no", again: true }),
      failed: ({ reason, again, tries }) => new Error(`${reason}, ${again}, ${tries}`),
      ...more,
    });

  it("rejects an answer that is too long, without a retry", async () => {
    let asked = 0;
    const url = await serve((_, reply) => {
      asked++;
      reply.end("abc");
    });
    const receive = (most: number) => (response: Response) => readReply(response, most);
    expect(await ask(url, { receive: receive(3) })).toBe(200);
    await expect(ask(url, { receive: receive(2) })).rejects.toThrow(
      "an answer of more than 2 bytes, false, 1",
    );
    expect(asked).toBe(2);
  });

  it("repeats what may have arrived only if that is harmless", async () => {
    let asked = 0;
    const url = await serve((request) => {
      asked++;
      request.socket.destroy();
    });
    await expect(ask(url, { repeatable: false })).rejects.toThrow(/, false, 1$/);
    await expect(ask(url)).rejects.toThrow(/, true, 3$/);
    expect(asked).toBe(4);
    // There is no server, so it cannot have arrived.
    servers.pop()!.close();
    await expect(ask(url, { repeatable: false })).rejects.toThrow(/ECONN.*, true, 3$/);
  });

  it("gives up when the time is up, and waits no longer", async () => {
    const url = await serve((_, reply) => reply.writeHead(503, { "retry-after": "90" }).end());
    const waits: number[] = [];
    const runtime = { wait: async (ms: number) => void waits.push(ms) };
    const judge = () => ({ reason: "busy", again: true, retryAfterMs: 90_000 });
    const timed = { timeoutMs: 60_000, backoffMs: 1 };
    await expect(
      ask(url, { judge, runtime, retry: { ...timed, giveUpAfterMs: 0 } }),
    ).rejects.toThrow("busy, true, 1");
    expect(waits).toEqual([]);
    const stop = new AbortController();
    const stopping = {
      wait: async (ms: number) => {
        waits.push(ms);
        stop.abort(new Error("seen"));
      },
    };
    await expect(
      ask(url, {
        judge,
        runtime: stopping,
        signal: stop.signal,
        retry: { ...timed, giveUpAfterMs: 60_000 },
      }),
    ).rejects.toThrow("seen");
    expect(waits).toEqual([60_000]);
  });
});
