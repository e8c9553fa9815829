/** Answers requests of the endpoint: reads one in its API, asks the model, and writes the answer. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type MemoryBudget, readJson, sendJson } from "@pawl/core/http/http-server.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import type { ChatRequest } from "../chat.js";
import { promptLength, type RecordedSession } from "../session.js";
import type { Api, Exchange, Frame, StreamEvent } from "./api.js";
import { parseCountRequest } from "./messages-request.js";
import { Refusal, refusalOf } from "./refusal.js";
import type { SessionRecord } from "./session-record.js";
import { newMemory, type OpenSession, type Sessions } from "./sessions.js";

/** What an endpoint allows. */
export interface EndpointLimits {
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

/** A server at work. */
export interface Context {
  readonly options: EndpointOptions;
  readonly limits: EndpointLimits;
  readonly sessions: Sessions;
  readonly budget: MemoryBudget;
  /** Every call that is being answered. */
  readonly running: Set<AbortController>;
  /** Seconds since 1970. */
  readonly created: number;
}

/** The JSON of a body, within the server's memory. */
export const bodyOf = (
  asked: IncomingMessage,
  reply: ServerResponse,
  { limits, budget }: Context,
  missing?: unknown,
): Promise<unknown> =>
  readJson(asked, { maxBytes: limits.maxBodyBytes, take: budget.lease(reply), missing });

/** The refusal of a request for another model. */
export const noModel = (asked: string, model: string): Refusal =>
  new Refusal(404, `there is no model ${asked}; the one served here is ${model}`, {
    param: "model",
    code: "model_not_found",
  });

/** Answers a request of an API, in the session of this name. */
export async function answer(
  asked: IncomingMessage,
  reply: ServerResponse,
  context: Context,
  api: Api,
  id: string | undefined,
): Promise<void> {
  const { options, limits, sessions, running } = context;
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
    const body = await bodyOf(asked, reply, context);
    session = id === undefined ? undefined : sessions.find(id);
    const { model, tokenizer } = options;
    const created = Math.floor(Date.now() / 1000);
    const memory = id === undefined ? undefined : (session?.memory ?? newMemory());
    const frame: Frame = { id: randomUUID(), model, created, tokenizer, memory };
    const exchange = api.read(body, frame);
    if (exchange.model !== model) throw noModel(exchange.model, model);
    const characters = refuseHuge(exchange.request, options.maxContext);
    if (id !== undefined) session ??= sessions.start(id, undefined, memory);
    session?.running.add(call);
    forget = session && sessions.keep(session, characters);
    const asking = session?.session ?? options.createSession(undefined, undefined);
    if (exchange.stream) await stream(reply, exchange, asking, call, api);
    else sendJson(reply, 200, exchange.whole(await asking.ask(exchange.request, call.signal)));
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

/** Sends an answer as server-sent events, as it is sampled; what is refused before has a status. */
async function stream(
  reply: ServerResponse,
  exchange: Exchange,
  asking: RecordedSession,
  call: AbortController,
  { parts }: Api,
): Promise<void> {
  const writer = exchange.events();
  const send = (events: readonly StreamEvent[]): void => {
    if (reply.destroyed) return;
    if (!reply.headersSent)
      reply.writeHead(200, {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache",
      });
    reply.write(events.map(eventText).join(""));
  };
  try {
    const heard = await asking.ask(exchange.request, call.signal, (part) =>
      send(writer.hear(part)),
    );
    send(writer.end(heard));
  } catch (error) {
    if (!reply.headersSent) throw error;
    const reason: unknown = call.signal.aborted ? call.signal.reason : error;
    const refusal = refusalOf(reason, parts);
    send(writer.fail(refusal ?? new Refusal(500, "the server failed; see its output")));
    reply.end();
    throw error;
  }
  reply.end();
}

const eventText = ({ name, data }: StreamEvent): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;

/** Says how long a prompt is, for clients that watch the context. */
export async function countPrompt(
  asked: IncomingMessage,
  reply: ServerResponse,
  context: Context,
): Promise<void> {
  const { options } = context;
  const { model, request } = parseCountRequest(await bodyOf(asked, reply, context));
  if (model !== options.model) throw noModel(model, options.model);
  refuseHuge(request, options.maxContext);
  const session = options.createSession(undefined, undefined);
  sendJson(reply, 200, { input_tokens: promptLength(session.options, request) });
}

/** Refuses texts that cannot fit, before they are encoded; returns how many characters they have. */
function refuseHuge({ messages, tools }: ChatRequest, maxContext: number): number {
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
