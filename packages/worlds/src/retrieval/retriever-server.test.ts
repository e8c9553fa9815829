import { createServer, type RequestListener, request, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { memoryCorpus } from "./corpus.js";
import type { Retriever } from "./retriever.js";
import { bm25Retriever } from "./retriever-bm25.js";
import { httpRetriever } from "./retriever-open.js";
import { createRetrieverServer } from "./retriever-server.js";

const local = bm25Retriever(
  memoryCorpus("test", "", [
    { id: "a", contents: "Oak\nThe oak is a tree." },
    { id: "b", contents: "Lamp\nA lamp of oak, and another lamp." },
    { id: "c", contents: "Lampe 橡木 ★" },
  ]),
);

async function start(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("the server", () => {
  const server = createRetrieverServer({ retriever: local, topk: 1 });
  let url: string;
  beforeAll(async () => {
    url = await start(server);
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const post = async (body: unknown, path = "/retrieve") => {
    const response = await fetch(url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    return [response.status, await response.json()];
  };

  it("returns the same results as a local search", async () => {
    for (const address of [url, `${url}/`, `${url}/retrieve`]) {
      const retriever = httpRetriever({ url: address });
      for (const query of ["oak lamp", "橡木", "nothing at all", "oak ".repeat(25_000)])
        expect(await retriever.search(query, 2)).toEqual(local.search(query, 2));
    }
  });

  it("tells clients how long it keeps idle connections", async () => {
    const { headers } = await fetch(`${url}/health`);
    expect(headers.get("keep-alive")).toBe("timeout=75");
  });

  it("answers several queries, with and without scores, as many as asked for", async () => {
    const oak = { id: "a", contents: "Oak\nThe oak is a tree." };
    const lamp = { id: "b", contents: "Lamp\nA lamp of oak, and another lamp." };
    expect(await post({ queries: ["tree", "lamp", "zzz"] })).toEqual([
      200,
      { result: [[oak], [lamp], []] },
    ]);
    expect(await post({ queries: ["oak"], topk: 5, return_scores: true })).toEqual([
      200,
      { result: [[oak, lamp].map((document) => ({ document, score: expect.any(Number) }))] },
    ]);
    expect(await post({ queries: [], topk: null })).toEqual([200, { result: [] }]);
    expect(await (await fetch(`${url}/health`)).json()).toEqual({
      status: "ok",
      retriever: "BM25 over test",
      passages: 3,
    });
  });

  it.each([
    ["{", 400, /not JSON/],
    ["[]", 400, /expected object/],
    [{ queries: "oak" }, 400, /queries/],
    [{ queries: [1] }, 400, /queries\[0\]/],
    [{ queries: ["a"], topk: 0 }, 400, /topk/],
    [{ queries: ["a"], topk: 1e9 }, 400, /topk/],
    [{ queries: Array(5000).fill("a") }, 400, /queries/],
    [{ queries: ["a".repeat(2 ** 20 + 1)] }, 400, /queries\[0\]/],
    ["a".repeat(2 ** 23 + 1), 413, /at most 8388608 bytes/],
    [{ queries: Array(4096).fill("a"), topk: 1000 }, 400, /4096000 passages; at most 16384/],
  ])("refuses a request that cannot be meant: %.40j", async (body, status, message) => {
    expect(await post(body)).toEqual([status, { error: expect.stringMatching(message) }]);
  });

  it("refuses what a web page could send", async () => {
    const ask = (headers: Record<string, string>) =>
      new Promise<number | undefined>((resolve, reject) => {
        const body = JSON.stringify({ queries: ["oak"] });
        request(`${url}/retrieve`, { method: "POST", headers }, (reply) =>
          resolve(reply.resume().statusCode),
        )
          .on("error", reject)
          .end(body);
      });
    const json = { "content-type": "application/json" };
    expect(await ask({ "content-type": "text/plain" })).toBe(415);
    expect(await ask({ ...json, origin: "https://evil.example" })).toBe(403);
    expect(await ask({ ...json, origin: "null" })).toBe(403);
    expect(await ask({ ...json, host: "rebound.example:8000" })).toBe(403);
    expect(await ask({ ...json, origin: "http://localhost:3000" })).toBe(403);
    expect(await ask({ ...json, origin: url })).toBe(200);
    expect(await ask(json)).toBe(200);
  });

  it("answers any body with JSON", async () => {
    const body = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.json(),
      fc
        .record({ queries: fc.array(fc.string()), topk: fc.integer() })
        .map((one) => JSON.stringify(one)),
      fc.array(fc.string({ unit: "grapheme" })).map((queries) => JSON.stringify({ queries })),
    );
    await fc.assert(
      fc.asyncProperty(body, async (text) => {
        const [status, answer] = await post(text);
        expect(answer).toEqual(
          status === 200 ? { result: expect.any(Array) } : { error: expect.any(String) },
        );
        expect([200, 400]).toContain(status);
      }),
    );
  });

  it("knows its paths and methods", async () => {
    expect(await post({ queries: [] }, "/other")).toEqual([404, { error: expect.any(String) }]);
    expect((await fetch(`${url}/retrieve`)).status).toBe(405);
  });

  it("survives a client that disconnects during its request", async () => {
    const { port } = server.address() as AddressInfo;
    await new Promise<void>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.write("POST /retrieve HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
        setImmediate(() => socket.destroy());
      });
      socket.on("close", () => resolve());
    });
    expect(await httpRetriever({ url }).search("tree", 1)).toHaveLength(1);
  });
});

describe("the client of a server that misbehaves", () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });
  const clientOf = async (listener: RequestListener) => {
    const server = createServer(listener);
    servers.push(server);
    const url = await start(server);
    return (timeoutMs: number) => httpRetriever({ url, timeoutMs, retries: 1, backoffMs: 1 });
  };

  it.each<[string, RequestListener, RegExp, number?]>([
    ["says nothing", () => undefined, /no answer within 100 ms/, 100],
    ["hangs up", (asked) => asked.socket.destroy(), /2 times, most recently with/],
    ["is broken", (_, reply) => reply.writeHead(500).end("oops"), /status 500: oops/],
    ["sends a page", (_, reply) => reply.end("<html>"), /not JSON/],
    ["sends another form", (_, reply) => reply.end('{"hits": []}'), /expected \{"result"/],
    ["sends too few results", (_, reply) => reply.end('{"result": []}'), /for 1 query, got 0/],
    [
      "sends passages without text",
      (_, reply) => reply.end('{"result": [[{"document": {"title": "a"}, "score": 1}]]}'),
      /expected \{"result"/,
    ],
  ])("that %s: a clear error", async (_, listener, message, timeoutMs = 60_000) => {
    const search = (await clientOf(listener))(timeoutMs).search("oak", 1);
    await expect(search).rejects.toThrow(message);
    await expect(search).rejects.toThrow(/^the retriever does not answer: POST http:.*\/retrieve/);
    await expect(search).rejects.toThrow(/pawl serve retriever/);
  });

  it("retries, accepts documents without scores or ids, and takes no more than requested", async () => {
    let tries = 0;
    const client = await clientOf((_, reply) => {
      if (tries++ === 0) reply.writeHead(503).end();
      else
        reply.end(
          '{"result": [[{"contents": "x"}, {"id": 4, "contents": "y"}, {"contents": "z"}]]}',
        );
    });
    expect(await client(60_000).search("oak", 2)).toEqual([
      { passage: { id: "#1", contents: "x" }, score: Number.NaN },
      { passage: { id: "4", contents: "y" }, score: Number.NaN },
    ]);
  });
});

it("keeps within its memory however many ask at once, and answers again afterwards", async () => {
  const contents = "x".repeat(10_000);
  const passages = Array.from({ length: 1000 }, (_, i) => ({
    id: `${i}`,
    contents: `oak ${contents}`,
  }));
  const found = passages.map((passage) => ({ passage, score: 1 }));
  const retriever: Retriever = {
    local: true,
    name: "large",
    count: 1000,
    search: (_, limit) => found.slice(0, limit),
  };
  const server = createRetrieverServer({ retriever });
  const url = await start(server);
  const ask = (queries: number, topk: number) =>
    fetch(`${url}/retrieve`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ queries: Array(queries).fill("oak"), topk }),
    });
  try {
    expect((await ask(16, 1000)).status).toBe(400);
    // Twenty answers of 20 MB each would be 400 MB.
    const many = await Promise.all(Array.from({ length: 20 }, () => ask(1, 1000)));
    const statuses = many.map(({ status }) => status);
    expect(statuses).toContain(200);
    expect(statuses).toContain(503);
    expect(new Set(statuses).size).toBe(2);
    await Promise.all(many.map((reply) => reply.arrayBuffer()));
    expect((await ask(1, 3)).status).toBe(200);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
