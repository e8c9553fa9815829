/**
 * A retriever served over HTTP as Search-R1's server does it, so that other frameworks can use ours:
 *
 *   POST /retrieve {"queries": ["…"], "topk": 3, "return_scores": true}
 *     → {"result": [[{"document": {"id", "contents"}, "score"}, …], …]}
 *
 * Without `return_scores` the documents come without scores. `GET /health` says that it is up. There is no
 * key, because Search-R1's clients send none: bind it to loopback, or to a network that may read the corpus.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import { createAccess } from "../http-access.js";
import {
  CLIENT_TIMES,
  createBudget,
  HttpError,
  pathOf,
  readJson,
  sendJson,
} from "../http-server.js";
import type { Retriever } from "./retriever.js";

const MOST_BYTES = 2 ** 23;
const MOST_QUERIES = 4096;
const MOST_QUERY = 2 ** 20;
const MOST_TOPK = 1000;
/** Passages that one request may ask for, and the bytes that its answer may have. */
const MOST_PASSAGES = 2 ** 14;
const MOST_ANSWER = 2 ** 25;
/** A client that neither sends nor reads for this long is disconnected. */
const IDLE_MS = 120_000;
/** A local search never yields, so other clients get a turn after this long. */
const BREATHE_EVERY_MS = 20;

const request = z.object({
  queries: z.array(z.string().max(MOST_QUERY)).max(MOST_QUERIES),
  topk: z.int().min(1).max(MOST_TOPK).nullish(),
  return_scores: z.boolean().nullish(),
});

/** What to serve. */
export interface RetrieverServerOptions {
  readonly retriever: Retriever;
  /** Passages per query if a request does not say. */
  readonly topk?: number;
}

/** A server that is not listening yet. */
export function createRetrieverServer(options: RetrieverServerOptions): Server {
  const budget = createBudget();
  const server = createServer(CLIENT_TIMES, (asked, reply) => {
    answer(asked, reply, options, budget.lease(reply)).catch((error: unknown) => {
      if (reply.headersSent || reply.destroyed) {
        reply.destroy();
        return;
      }
      const status = error instanceof HttpError ? error.status : 500;
      // Do not wait for the rest of a rejected body.
      if (!asked.complete) reply.setHeader("connection", "close");
      const message = error instanceof Error ? error.message : String(error);
      sendJson(reply, status, { error: message }, status === 503 ? { "retry-after": "1" } : {});
    });
  });
  server.maxConnections = 1024;
  server.timeout = IDLE_MS;
  return server;
}

const access = createAccess({ open: true });

async function answer(
  asked: IncomingMessage,
  reply: ServerResponse,
  { retriever, topk: usual = 3 }: RetrieverServerOptions,
  take: (bytes: number) => void,
): Promise<void> {
  access(asked);
  const path = pathOf(asked);
  if (path === "/health" && asked.method === "GET")
    return sendJson(reply, 200, {
      status: "ok",
      retriever: retriever.name,
      ...(retriever.local && { passages: retriever.count }),
    });
  if (path !== "/retrieve") throw new HttpError(404, "available: POST /retrieve and GET /health");
  if (asked.method !== "POST") throw new HttpError(405, "/retrieve requires POST");
  const parsed = request.safeParse(await readJson(asked, { maxBytes: MOST_BYTES, take }));
  if (!parsed.success) throw new HttpError(400, z.prettifyError(parsed.error));
  const { queries, topk, return_scores } = parsed.data;
  const passages = queries.length * (topk ?? usual);
  if (passages > MOST_PASSAGES)
    throw new HttpError(
      400,
      `${queries.length} queries with topk ${topk ?? usual} ask for ${passages} passages; at most ${MOST_PASSAGES} per request`,
    );
  const result = [];
  let size = 0;
  let last = performance.now();
  for (const query of queries) {
    if (reply.destroyed) return;
    const found = await retriever.search(query, topk ?? usual);
    const bytes = found.reduce((sum, { passage }) => sum + 2 * passage.contents.length + 100, 0);
    size += bytes;
    if (size > MOST_ANSWER)
      throw new HttpError(
        400,
        `the answer has more than ${MOST_ANSWER} bytes: send fewer queries at once`,
      );
    take(bytes);
    result.push(
      found.map(({ passage, score }) => (return_scores ? { document: passage, score } : passage)),
    );
    if (performance.now() - last < BREATHE_EVERY_MS) continue;
    await setImmediate();
    last = performance.now();
  }
  sendJson(reply, 200, { result });
}
