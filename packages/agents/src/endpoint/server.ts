/**
 * A model as an HTTP endpoint that speaks OpenAI's chat completions and records sessions.
 *
 *   POST /v1/chat/completions               one answer; nothing is recorded
 *   POST /sessions/ID/v1/chat/completions   the same, recorded in a session, which starts by itself
 *   POST /sessions {"id"?, "seed"?}         starts a session
 *   GET /sessions/ID                        its calls so far, with their tokens
 *   DELETE /sessions/ID                     the same, and ends it: further calls are refused (410)
 *   GET /sessions, GET /v1/models, GET /health
 *
 * A client that disconnects frees its place: its answer is no longer sampled and not recorded.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type Access, createAccess } from "@pawl/core/http/http-access.js";
import {
  CLIENT_TIMES,
  createBudget,
  type MemoryBudget,
  pathOf,
  readJson,
  sendJson,
  USUAL_BUDGET,
} from "@pawl/core/http/http-server.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { z } from "zod";
import type { RecordedSession } from "../session.js";
import { chunksOf, completionOf } from "./completion.js";
import {
  COMPLETION_PARTS,
  type CompletionRequest,
  parseCompletionRequest,
} from "./completion-request.js";
import { errorBody, Refusal, refusalOf } from "./refusal.js";
import { type SessionRecord, sessionRecord } from "./session-record.js";
import { createSessions, type OpenSession, type Sessions } from "./sessions.js";

/** What an endpoint allows. */
interface EndpointLimits {
  readonly maxBodyBytes: number;
  readonly maxSessions: number;
  /** A session that nobody uses for this long ends. */
  readonly idleMs: number;
  /** Calls that are being answered. */
  readonly maxRequests: number;
  /** Bytes of requests that are being read or answered. */
  readonly maxMemory: number;
  /** Characters of conversations that open sessions keep. */
  readonly maxKept: number;
  /** Time for the headers of a request; for its body too, three times as long. */
  readonly headersMs: number;
}

const usual: EndpointLimits = {
  maxBodyBytes: 2 ** 23,
  maxSessions: 1024,
  idleMs: 1_800_000,
  maxRequests: 512,
  maxMemory: USUAL_BUDGET,
  maxKept: 2 ** 28,
  headersMs: CLIENT_TIMES.headersTimeout,
};

/**
 * Characters per token of context that are worth encoding: a text of more is far too long for the
 * model, and encoding it would keep everybody waiting.
 */
const MAX_CHARACTERS_PER_TOKEN = 32;

/** What is served, and to whom. */
export interface EndpointOptions {
  /** The name that requests give. */
  readonly model: string;
  readonly tokenizer: Tokenizer;
  readonly maxContext: number;
  /** Makes a session; `id` is undefined for a single answer. */
  createSession(id: string | undefined, seed: number | undefined): RecordedSession;
  readonly key?: string | undefined;
  readonly limits?: Partial<EndpointLimits>;
  /** Is told of every session that ended. */
  onSession?(record: SessionRecord): void;
  /** Is told of errors that are not the client's. */
  onFault?(error: unknown): void;
}

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
        const refusal = refusalOf(error, COMPLETION_PARTS);
        if (refusal === undefined) options.onFault?.(error);
        if (reply.headersSent || reply.destroyed) {
          reply.destroy();
          return;
        }
        // Do not wait for the rest of a rejected body.
        if (!asked.complete) reply.setHeader("connection", "close");
        const shown = refusal ?? new Refusal(500, "the server failed; see its output");
        const { retryAfter } = shown.details;
        sendJson(
          reply,
          shown.status,
          errorBody(shown),
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

interface Context {
  readonly options: EndpointOptions;
  readonly limits: EndpointLimits;
  readonly sessions: Sessions;
  readonly budget: MemoryBudget;
  /** Every call that is being answered. */
  readonly running: Set<AbortController>;
  /** Seconds since 1970. */
  readonly created: number;
}

const address = /^(?:\/sessions\/([^/]+))?(?:\/v1)?(\/chat\/completions|\/models(?:\/.+)?)$/;

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
  if (call === "/chat/completions") {
    allow(asked, "POST");
    return complete(asked, reply, context, id);
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
      "available: POST /v1/chat/completions, GET /v1/models, GET /health, POST and GET /sessions, GET and DELETE /sessions/ID, and /sessions/ID/v1/…",
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

const noModel = (asked: string, model: string): Refusal =>
  new Refusal(404, `there is no model ${asked}; the one served here is ${model}`, {
    param: "model",
    code: "model_not_found",
  });

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

/** The JSON of a body, within the server's memory. */
const bodyOf = (
  asked: IncomingMessage,
  reply: ServerResponse,
  { limits, budget }: Context,
  missing?: unknown,
): Promise<unknown> =>
  readJson(asked, { maxBytes: limits.maxBodyBytes, take: budget.lease(reply), missing });

async function complete(
  asked: IncomingMessage,
  reply: ServerResponse,
  context: Context,
  named: string | undefined,
): Promise<void> {
  const { options, limits, sessions, running } = context;
  const id = named === undefined ? undefined : decoded(named);
  // Before its body is read: an ended session needs none.
  if (id !== undefined) sessions.find(id);
  if (running.size >= limits.maxRequests)
    throw new Refusal(429, `${limits.maxRequests} calls are being answered, which is the limit`, {
      code: "too_many_requests",
      retryAfter: 1,
    });
  const call = new AbortController();
  running.add(call);
  const gone = () => call.abort(new Refusal(499, "the client is gone"));
  reply.once("close", gone);
  let session: OpenSession | undefined;
  let forget: (() => void) | undefined;
  try {
    const request = parseCompletionRequest(await bodyOf(asked, reply, context));
    if (request.model !== options.model) throw noModel(request.model, options.model);
    const characters = refuseHuge(request, options.maxContext);
    session = id === undefined ? undefined : (sessions.find(id) ?? sessions.start(id));
    session?.running.add(call);
    forget = session && sessions.keep(session, characters);
    const { ask } = session?.session ?? options.createSession(undefined, undefined);
    const answer = await ask(request, call.signal);
    const frame = {
      id: `chatcmpl-${randomUUID()}`,
      model: options.model,
      created: Math.floor(Date.now() / 1000),
    };
    if (request.stream) sendEvents(reply, chunksOf(answer, frame, request, options.tokenizer));
    else sendJson(reply, 200, completionOf(answer, frame, request, options.tokenizer));
  } catch (error) {
    forget?.();
    // The reason may have been given while something else failed.
    throw call.signal.aborted ? call.signal.reason : error;
  } finally {
    reply.removeListener("close", gone);
    running.delete(call);
    session?.running.delete(call);
    if (session !== undefined) sessions.touch(session);
  }
}

/** Refuses texts that cannot fit, before they are encoded; returns how many characters they have. */
function refuseHuge({ messages, tools }: CompletionRequest, maxContext: number): number {
  const lengthOf = (value: unknown) => JSON.stringify(value ?? "").length;
  const characters = messages.reduce((sum, message) => sum + lengthOf(message), lengthOf(tools));
  if (characters > MAX_CHARACTERS_PER_TOKEN * (maxContext + 256))
    throw new Refusal(
      400,
      `the messages and tools have ${characters} characters, and the model reads ${maxContext} tokens`,
      { param: "messages", code: "context_length_exceeded" },
    );
  return characters;
}

/** Sends chunks as server-sent events. */
function sendEvents(reply: ServerResponse, chunks: readonly object[]): void {
  reply.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
  });
  const events = [...chunks.map((chunk) => JSON.stringify(chunk)), "[DONE]"];
  reply.end(events.map((event) => `data: ${event}\n\n`).join(""));
}
