/**
 * An environment behind OpenEnv's protocol: `/ws` for episodes, HTTP for what the environment is
 * and which tasks it has. One WebSocket is one session with a world of its own.
 *
 * Everything is bounded: sessions, connections, the length of messages, the messages that wait,
 * what clients leave unread, one by one and all together, and how long a session may be idle.
 */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Duplex } from "node:stream";
import type { Environment } from "@pawl/core/envs/env.js";
import { createAccess } from "@pawl/core/http/http-access.js";
import {
  CLIENT_TIMES,
  createBudget,
  HttpError,
  type MemoryBudget,
  pathOf,
  sendJson,
  USUAL_BUDGET,
} from "@pawl/core/http/http-server.js";
import { type WebSocket, WebSocketServer } from "ws";
import { answerHttp, type HttpContext, Unprocessable } from "./env-http.js";
import { describeServed } from "./env-schema.js";
import { answerMessage } from "./env-session.js";
import { createEnvSessions, type EnvSession, type EnvSessions } from "./env-sessions.js";
import { errorMessage } from "./protocol.js";

/** What a server allows. */
export interface EnvServerLimits {
  readonly maxSessions: number;
  readonly maxMessageBytes: number;
  /** A session that nobody uses for this long ends. */
  readonly idleMs: number;
}

const usual: EnvServerLimits = { maxSessions: 1024, maxMessageBytes: 2 ** 20, idleMs: 1_800_000 };

/** Connections besides those of sessions: HTTP calls, and clients that are told to go. */
const SPARE_CONNECTIONS = 128;
/** Messages of a session that may wait for their answers; the protocol has one at a time. */
const MAX_WAITING = 64;
/** Bytes of answers that a client may leave unread. */
const MAX_UNREAD = 2 ** 24;
/** How long a client may take to close its side. */
const CLOSE_MS = 2000;

/** What is served, and to whom. */
export interface EnvServerOptions {
  readonly environment: Environment;
  /** What it is, for `/metadata`. */
  readonly summary?: string;
  readonly key?: string | undefined;
  readonly limits?: Partial<EnvServerLimits>;
  /** Is told of errors that are not the client's. */
  onFault?(error: unknown): void;
}

/** A server of an environment. */
export interface EnvServer {
  /** A server that is not listening yet. */
  readonly server: Server;
  readonly maxSessions: number;
  /** Ends all sessions; the server can then be closed. */
  stop(): Promise<void>;
}

/** Makes a server for an environment. */
export async function createEnvServer(options: EnvServerOptions): Promise<EnvServer> {
  const { environment, summary = "", key, onFault } = options;
  const limits = { ...usual, ...options.limits };
  const maxSessions = Math.min(limits.maxSessions, environment.parallel ?? limits.maxSessions);
  const served = await describeServed(environment, summary, maxSessions);
  const sessions = createEnvSessions(environment, { ...limits, maxSessions }, onFault);
  const { maxMessageBytes } = limits;
  const budget = createBudget(Math.max(USUAL_BUDGET, 4 * maxMessageBytes));
  const context: HttpContext = {
    ...{ environment, served, sessions, maxSessions, maxMessageBytes, budget },
  };
  const access = createAccess({ key });
  const server = createServer(CLIENT_TIMES, async (asked, reply) => {
    try {
      const isHealth = pathOf(asked) === "/health" && asked.method === "GET";
      access(asked, isHealth);
      if (isHealth) return sendJson(reply, 200, { status: "healthy" });
      await answerHttp(asked, reply, context);
    } catch (error) {
      if (!(error instanceof HttpError)) onFault?.(error);
      if (reply.headersSent || reply.destroyed) return reply.destroy();
      if (!asked.complete) reply.setHeader("connection", "close");
      const [status, detail] = refusalOf(error);
      sendJson(reply, status, { detail }, status === 503 ? { "retry-after": "1" } : {});
    }
  });
  server.maxConnections = maxSessions + SPARE_CONNECTIONS;
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: maxMessageBytes,
    perMessageDeflate: false,
  });
  server.on("upgrade", (asked, socket, head) => {
    socket.on("error", () => socket.destroy());
    try {
      access(asked);
      if (pathOf(asked) !== "/ws") throw new HttpError(404, "episodes are played at /ws");
    } catch (error) {
      refuseUpgrade(socket, error as HttpError);
      return;
    }
    sockets.handleUpgrade(asked, socket, head, (webSocket) =>
      attach(webSocket, asked, context, onFault),
    );
  });
  return {
    server,
    maxSessions,
    async stop() {
      for (const webSocket of sockets.clients) leave(webSocket, 1001, "the server is stopping");
      await sessions.close();
    },
  };
}

function refusalOf(error: unknown): readonly [status: number, detail: unknown] {
  if (error instanceof Unprocessable) return [error.status, error.detail];
  if (error instanceof HttpError) return [error.status, error.message];
  return [500, "the server failed; see its output"];
}

function refuseUpgrade(socket: Duplex, { status, message }: HttpError): void {
  const body = JSON.stringify({ detail: message });
  socket.end(
    `HTTP/1.1 ${status} Refused\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** Closes a socket, also one whose client does not answer. */
function leave(webSocket: WebSocket, code: number, reason: string): void {
  webSocket.close(code, reason);
  setTimeout(() => webSocket.terminate(), CLOSE_MS).unref();
}

/** Gives a new socket its session, or tells its client why it gets none. */
function attach(
  webSocket: WebSocket,
  asked: IncomingMessage,
  { sessions, maxSessions, budget }: HttpContext,
  onFault?: (error: unknown) => void,
): void {
  webSocket.on("error", () => webSocket.terminate());
  const id = new URL(asked.url ?? "/", "http://localhost").searchParams.get("session_id");
  const idle = (): void => leave(webSocket, 1001, "the session was idle for too long");
  let session: EnvSession | string;
  try {
    session =
      id === null
        ? (sessions.start(idle) ?? full(sessions.size, maxSessions))
        : named(id, sessions);
  } catch (error) {
    onFault?.(error);
    session = errorMessage("FACTORY_ERROR", (error as Error).message);
  }
  if (typeof session === "string") {
    webSocket.send(session);
    leave(webSocket, 1000, "");
    return;
  }
  const own = session;
  own.attached = true;
  webSocket.on("close", () => {
    own.attached = false;
    // A session that was made over HTTP is ended there.
    if (id === null) void sessions.end(own.id);
  });
  webSocket.on("message", (data, isBinary) => {
    if (webSocket.readyState !== webSocket.OPEN) return;
    answer(webSocket, own, isBinary ? undefined : String(data), budget, onFault);
  });
}

const full = (active: number, most: number): string =>
  errorMessage("CAPACITY_REACHED", `Server at capacity: ${active}/${most} sessions active`, {
    active_sessions: active,
    max_sessions: most,
  });

function named(id: string, sessions: EnvSessions): EnvSession | string {
  const session = sessions.find(id);
  if (session === undefined)
    return errorMessage("SESSION_ERROR", `Unknown session_id: ${id.slice(0, 100)}`);
  return session.attached
    ? errorMessage("SESSION_ERROR", `Session ${id} already has an attached WebSocket`)
    : session;
}

function answer(
  webSocket: WebSocket,
  session: EnvSession,
  /** What was said; undefined if it is no text. */
  message: string | undefined,
  budget: MemoryBudget,
  onFault?: (error: unknown) => void,
): void {
  if (session.pending >= MAX_WAITING) {
    leave(webSocket, 1008, `more than ${MAX_WAITING} messages wait for their answers`);
    return;
  }
  if (webSocket.bufferedAmount > MAX_UNREAD) {
    webSocket.terminate();
    return;
  }
  const done = budget.hold(message === undefined ? 0 : Buffer.byteLength(message));
  if (done === undefined) {
    leave(webSocket, 1013, BUSY);
    return;
  }
  const say = (text: string | undefined): void => {
    done();
    if (text === undefined) leave(webSocket, 1000, "");
    else if (webSocket.readyState === webSocket.OPEN) send(webSocket, text, budget);
  };
  const answered = session.inOrder(() =>
    message === undefined
      ? errorMessage("INVALID_JSON", "expected a text frame with JSON, got a binary one")
      : answerMessage(session.episode, message, onFault),
  );
  if (answered instanceof Promise) void answered.then(say);
  else say(answered);
}

const BUSY = "the server is busy with other sessions: try again later";

/** Sends an answer, which is in memory until the client reads it. */
function send(webSocket: WebSocket, text: string, budget: MemoryBudget): void {
  const sent = budget.hold(Buffer.byteLength(text));
  if (sent === undefined) leave(webSocket, 1013, BUSY);
  else webSocket.send(text, sent);
}
