/**
 * A model as an HTTP endpoint that speaks the APIs of common clients and records sessions.
 *
 *   POST /v1/chat/completions, /v1/responses, /v1/messages   one answer; nothing is recorded
 *   POST /sessions/ID/v1/…                  the same, recorded in a session, which starts by itself
 *   POST /v1/messages/count_tokens          the length of a prompt
 *   POST /sessions {"id"?, "seed"?}         starts a session
 *   GET /sessions/ID                        its calls so far, with their tokens
 *   DELETE /sessions/ID                     the same, and ends it: further calls are refused (410)
 *   GET /sessions, GET /v1/models, GET /health
 *
 * A client that disconnects frees its place: its answer is no longer sampled and not recorded.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type Access, createAccess } from "@pawl/core/http/http-access.js";
import {
  CLIENT_TIMES,
  createBudget,
  pathOf,
  sendJson,
  USUAL_BUDGET,
} from "@pawl/core/http/http-server.js";
import { z } from "zod";
import {
  answer,
  bodyOf,
  type Context,
  countPrompt,
  type EndpointLimits,
  type EndpointOptions,
  noModel,
} from "./answering.js";
import type { Api } from "./api.js";
import { completions } from "./completion.js";
import { messages } from "./messages.js";
import { Refusal, refusalOf } from "./refusal.js";
import { responses } from "./responses.js";
import { sessionRecord } from "./session-record.js";
import { createSessions, type OpenSession } from "./sessions.js";

const usual: EndpointLimits = {
  maxBodyBytes: 2 ** 23,
  maxSessions: 1024,
  idleMs: 1_800_000,
  maxRequests: 512,
  maxMemory: USUAL_BUDGET,
  maxKept: 2 ** 28,
  headersMs: CLIENT_TIMES.headersTimeout,
};

/** An endpoint. */
export interface Endpoint {
  /** A server that is not listening yet. */
  readonly server: Server;
  /** Ends all sessions and the calls that are being answered; the server can then be closed. */
  stop(): void;
}

/** An endpoint for a model. */
export function createEndpoint(options: EndpointOptions): Endpoint {
  const limits = { ...usual, ...options.limits };
  const access = createAccess({ key: options.key });
  const created = Math.floor(Date.now() / 1000);
  const { onSession } = options;
  const sessions = createSessions({
    create: options.createSession,
    maxSessions: limits.maxSessions,
    maxKept: limits.maxKept,
    idleMs: limits.idleMs,
    ...(onSession && { onEnd: onSession }),
  });
  const budget = createBudget(limits.maxMemory);
  const context: Context = { options, limits, sessions, budget, running: new Set(), created };
  const { headersMs } = limits;
  const server = createServer(
    {
      ...CLIENT_TIMES,
      headersTimeout: headersMs,
      requestTimeout: 3 * headersMs,
      connectionsCheckingInterval: Math.min(30_000, headersMs),
    },
    (asked, reply) => {
      route(asked, reply, context, access).catch((error: unknown) => {
        const api = apiOf(asked);
        const refusal = refusalOf(error, api.parts);
        if (refusal === undefined) options.onFault?.(error);
        if (reply.headersSent || reply.destroyed) {
          if (!reply.writableEnded) reply.destroy();
          return;
        }
        // Do not wait for the rest of a rejected body.
        if (!asked.complete) reply.setHeader("connection", "close");
        const shown = refusal ?? new Refusal(500, "the server failed; see its output");
        const { retryAfter } = shown.details;
        sendJson(
          reply,
          shown.status,
          api.errorBody(shown),
          retryAfter === undefined ? {} : { "retry-after": String(retryAfter) },
        );
      });
    },
  );
  server.maxConnections = 2 * limits.maxRequests + limits.maxSessions;
  return {
    server,
    stop: () => {
      for (const call of context.running)
        call.abort(new Refusal(503, "the server is stopping", { code: "stopping" }));
      sessions.close("the server is stopping");
    },
  };
}

const address =
  /^(?:\/sessions\/([^/]+))?(?:\/v1)?(\/chat\/completions|\/responses|\/messages(?:\/count_tokens)?|\/models(?:\/.+)?)$/;

const apis: Readonly<Record<string, Api>> = {
  "/chat/completions": completions,
  "/responses": responses,
  "/messages": messages,
};

/** The API that a request speaks, or whose clients expect such an error. */
function apiOf(asked: IncomingMessage): Api {
  const call = address.exec(pathOf(asked))?.[2] ?? "";
  return call.startsWith("/messages") ? messages : (apis[call] ?? completions);
}

async function route(
  asked: IncomingMessage,
  reply: ServerResponse,
  context: Context,
  access: Access,
): Promise<void> {
  const path = pathOf(asked);
  const { method } = asked;
  const isHealth = path === "/health" && method === "GET";
  access(asked, isHealth);
  if (isHealth) return sendJson(reply, 200, { status: "ok" });
  const { sessions } = context;
  const [, id, call] = address.exec(path) ?? [];
  const name = id === undefined ? undefined : decoded(id);
  if (call === "/messages/count_tokens") {
    allow(asked, "POST");
    return countPrompt(asked, reply, context);
  }
  const api = apis[call ?? ""];
  if (api !== undefined) {
    allow(asked, "POST");
    return answer(asked, reply, context, api, name);
  }
  if (call !== undefined) {
    allow(asked, "GET");
    return sendJson(reply, 200, modelsOf(context, decoded(call.slice("/models/".length))));
  }
  if (path === "/sessions") {
    allow(asked, "GET", "POST");
    if (method === "GET")
      return sendJson(reply, 200, { object: "list", data: [...sessions.open.values()].map(brief) });
    const { id: name, seed } = parseStart(await bodyOf(asked, reply, context, {}));
    return sendJson(reply, 201, brief(sessions.start(name, seed)));
  }
  const named = /^\/sessions\/([^/]+)$/.exec(path)?.[1];
  if (named === undefined)
    throw new Refusal(
      404,
      "available: POST /v1/chat/completions, /v1/responses and /v1/messages, GET /v1/models, GET /health, POST and GET /sessions, GET and DELETE /sessions/ID, and /sessions/ID/v1/…",
    );
  allow(asked, "GET", "DELETE");
  const session = sessions.find(decoded(named));
  if (session === undefined) throw new Refusal(404, `there is no session ${decoded(named)}`);
  sendJson(
    reply,
    200,
    method === "GET" ? sessionRecord(session) : sessions.end(session.id, "it was deleted"),
  );
}

function allow({ method = "" }: IncomingMessage, ...methods: readonly string[]): void {
  if (!methods.includes(method))
    throw new Refusal(405, `expected ${methods.join(" or ")}, not ${method}`);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new Refusal(400, "the address is not properly encoded");
  }
}

function modelsOf({ options: { model }, created }: Context, name: string): object {
  const entry = { id: model, object: "model", created, owned_by: "pawl" };
  if (name === "") return { object: "list", data: [entry] };
  if (name === model) return entry;
  throw noModel(name, model);
}

const brief = ({ id, created, session }: OpenSession) => ({
  id,
  object: "session",
  created: Math.floor(created / 1000),
  calls: session.calls.length,
});

const start = z.strictObject({
  id: z.string().optional(),
  seed: z
    .int()
    .min(0)
    .max(2 ** 32 - 1)
    .optional(),
});

function parseStart(body: unknown): z.output<typeof start> {
  const parsed = start.safeParse(body);
  if (!parsed.success) throw new Refusal(400, z.prettifyError(parsed.error));
  return parsed.data;
}
