/** A session at an OpenEnv server: one message at a time, each with one answer. */

import { EnvError } from "@pawl/core/envs/env.js";
import { redact } from "@pawl/core/http/http-client.js";
import { isRecord } from "@pawl/core/text/tool.js";
import { WebSocket } from "ws";

/** An answer that is no error. */
export interface Answer {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** An error that the server reports. */
export class ServerRefusal extends EnvError {
  constructor(
    readonly code: string,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

/** The connection failed or was lost: nothing is known about the world. */
export class LostSession extends EnvError {}

/** A session. */
export interface SessionSocket {
  readonly open: boolean;
  /** Sends a message and waits for its answer; aborting loses the session. */
  ask(message: string, signal?: AbortSignal): Promise<Answer>;
  /** Ends the session and waits until the server knows. */
  close(): Promise<void>;
}

/** How to reach a server. */
export interface SocketOptions {
  /** Begins with ws:// or wss://. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly key?: string | undefined;
  readonly connectMs: number;
}

const MAX_ANSWER = 100 * 2 ** 20;
/** Servers and proxies drop connections over which nothing is said. */
const PING_MS = 20_000;
const CLOSE_MS = 2000;

/** Opens a session. */
export function openSession(options: SocketOptions, signal?: AbortSignal): Promise<SessionSocket> {
  const { url, headers, key, connectMs } = options;
  const socket = new WebSocket(url, {
    headers,
    handshakeTimeout: connectMs,
    maxPayload: MAX_ANSWER,
    perMessageDeflate: false,
    followRedirects: false,
  });
  let why = "the server closed the connection";
  let waiting: ((answer: Answer | Error) => void) | undefined;
  /** What the server said without being asked. */
  let unasked: Answer | Error | undefined;
  const hand = (answer: Answer | Error): void => {
    if (waiting === undefined) unasked = answer;
    else waiting(answer);
    waiting = undefined;
  };
  const lost = (): LostSession => new LostSession(redact(`${url}: ${why}`, key));
  const pings = setInterval(() => {
    if (socket.readyState === WebSocket.OPEN) socket.ping();
  }, PING_MS);
  pings.unref();
  const ended = new Promise<void>((resolve) => {
    socket.once("close", (code, reason) => {
      clearInterval(pings);
      if (code > 1000 && code !== 1005 && code !== 1006) why = `closed with ${code} ${reason}`;
      // What it said before it closed says more.
      if (waiting !== undefined) hand(lost());
      resolve();
    });
  });
  socket.on("error", (error) => {
    why = error.message;
  });
  socket.on("message", (data, isBinary) => {
    if (isBinary) hand(new LostSession(`${url}: a binary frame, expected text with JSON`));
    else hand(readAnswer(String(data), url));
  });
  const drop = (reason: string): void => {
    why = reason;
    socket.terminate();
  };
  const session: SessionSocket = {
    get open() {
      return socket.readyState === WebSocket.OPEN;
    },
    async ask(message, stop) {
      stop?.throwIfAborted();
      const answer = await new Promise<Answer | Error>((resolve) => {
        if (unasked !== undefined) return resolve(unasked);
        if (socket.readyState !== WebSocket.OPEN) return resolve(lost());
        if (waiting !== undefined)
          return resolve(new EnvError("two messages at once in one session"));
        const abort = (): void => drop("nobody waits for the answer any more");
        stop?.addEventListener("abort", abort, { once: true });
        waiting = (given) => {
          stop?.removeEventListener("abort", abort);
          resolve(given);
        };
        socket.send(message);
      });
      if (!(answer instanceof Error)) return answer;
      // After anything but an orderly error, answers may be out of step.
      if (answer instanceof LostSession) drop(answer.message);
      throw answer;
    },
    async close() {
      if (socket.readyState === WebSocket.CLOSED) return;
      socket.close(1000);
      const late = setTimeout(() => socket.terminate(), CLOSE_MS);
      await ended;
      clearTimeout(late);
    },
  };
  return new Promise((resolve, reject) => {
    const abort = (): void => drop("nobody waits for the connection any more");
    signal?.addEventListener("abort", abort, { once: true });
    socket.once("open", () => {
      signal?.removeEventListener("abort", abort);
      resolve(session);
    });
    socket.once("close", () => {
      signal?.removeEventListener("abort", abort);
      reject(lost());
    });
  });
}

function readAnswer(text: string, url: string): Answer | Error {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return new LostSession(`${url}: expected JSON, got ${JSON.stringify(text.slice(0, 100))}`);
  }
  if (!isRecord(value) || typeof value.type !== "string" || !isRecord(value.data))
    return new LostSession(`${url}: expected {"type", "data"}, got ${text.slice(0, 100)}`);
  const { type, data } = value;
  if (type !== "error") return { type, data };
  const { code, message, ...details } = data;
  return new ServerRefusal(String(code), String(message ?? code), details);
}
