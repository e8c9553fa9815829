/** What a server reports about itself, and a session with it: futures, heartbeats, models. */
import { randomUUID } from "node:crypto";
import { EngineError } from "@pawl/core/engine/engine.js";
import { packageVersion } from "@pawl/core/version.js";
import { z } from "zod";
import type { RequestOptions, Transport } from "./transport.js";

/** What a model on our own server is and supports. */
export const modelAbilities = z.object({
  vocabulary_size: z.int().min(1),
  max_context: z.int().min(1),
  parameters: z.number(),
  entropies: z.boolean().default(false),
  values: z.boolean().default(false),
  lora: z.boolean().default(false),
  scores_beside_sampling: z.boolean().default(false),
});

const extensions = z.object({
  version: z.literal(1),
  ...modelAbilities.partial().shape,
  objective: z.boolean().default(false),
  reference: z.boolean().default(false),
  discard: z.boolean().default(false),
  temperatures: z.boolean().default(false),
  constraints: z.boolean().default(false),
  sample_batch: z.boolean().default(false),
  base64: z.boolean().default(false),
  files: z.boolean().default(false),
  dtype: z.string().default("float32"),
  ranks: z.int().default(1),
});

/** The form of the answer to `get_server_capabilities`. */
export const serverCapabilities = z.object({
  supported_models: z.array(z.object({ model_name: z.string() })).default([]),
  pawl: extensions.optional(),
});

/** What our own server supports beyond the plain protocol. */
export type Extensions = z.output<typeof extensions>;

/** The answer to `get_server_capabilities`. */
type ServerCapabilities = z.output<typeof serverCapabilities>;

/** A session with a server, kept alive until it is closed. */
export interface Session {
  readonly transport: Transport;
  readonly server: ServerCapabilities;
  /** Starts a computation and waits for its result. */
  call(path: string, body: object, options?: RequestOptions): Promise<Result>;
  /** Creates a model; returns the result of its future. */
  createModel(body: object): Promise<{ readonly modelId: string; readonly result: Result }>;
  unloadModel(modelId: string): Promise<void>;
  close(): void;
}

/** A JSON object whose fields the caller checks. */
export type Result = Readonly<Record<string, unknown>>;

const HEARTBEAT_MS = 10_000;
/** SkyRL holds a poll for up to five minutes, while it compiles or computes. */
const POLL_MS = 330_000;
/** A wrong address should fail at once; a server that is just starting gets a moment. */
const CONNECT_MS = 10_000;

/** Asks the server what it supports. */
export async function askServer(
  transport: Transport,
  { connectMs: giveUpAfterMs = CONNECT_MS }: { readonly connectMs?: number },
): Promise<ServerCapabilities> {
  const { body } = await transport.get("get_server_capabilities", { giveUpAfterMs });
  return parse(serverCapabilities, body, "get_server_capabilities");
}

/** Asks the server what it supports and opens a session. */
export async function openSession(
  transport: Transport,
  options: { readonly heartbeatMs?: number; readonly connectMs?: number } = {},
): Promise<Session> {
  const server = await askServer(transport, options);
  const opened = await transport.post("create_session", {
    tags: ["pawl"],
    sdk_version: packageVersion(),
    type: "create_session",
  });
  const { session_id } = parse(z.object({ session_id: z.string() }), opened.body, "create_session");
  const closed = new AbortController();
  const alive = { signal: closed.signal, giveUpAfterMs: 0 };
  const timer = setInterval(() => {
    // A failed heartbeat can be ignored: the next call fails too, and says what to do about it.
    transport
      .post("session_heartbeat", { session_id, type: "session_heartbeat" }, alive)
      .catch(() => undefined);
  }, options.heartbeatMs ?? HEARTBEAT_MS);
  timer.unref();
  const trusted = server.pawl !== undefined;
  let models = 0;

  const resolve = async (path: string, requestId: unknown): Promise<Result> => {
    if (typeof requestId !== "string")
      throw new EngineError(
        `the engine server at ${transport.shownUrl} answered ${path} without a request_id; is it an engine server?`,
      );
    for (;;) {
      const { status, body } = await transport.post(
        "retrieve_future",
        { request_id: requestId },
        { signal: closed.signal, accept: [408], answerMs: trusted ? undefined : POLL_MS },
      );
      // Tinker also says "not yet" in an answer with status 200.
      if (status === 408 || body.type === "try_again") continue;
      // SkyRL and Tinker also report failures in the result.
      if (typeof body.error === "string") throw new EngineError(body.error);
      return body;
    }
  };
  const call = async (path: string, body: object, request: RequestOptions = {}) => {
    const options = { signal: closed.signal, repeatable: trusted, ...request };
    const { body: answer } = await transport.post(path, body, options);
    return resolve(path, answer.request_id);
  };
  return {
    transport,
    server,
    call,
    async createModel(body) {
      const { body: answer } = await transport.post(
        "create_model",
        // Ours makes no second model for the same key; others number the models of a session.
        {
          session_id,
          ...(trusted ? { request_key: randomUUID() } : { model_seq_id: models++ }),
          ...body,
        },
        { signal: closed.signal, repeatable: trusted },
      );
      const { model_id } = parse(z.object({ model_id: z.string() }), answer, "create_model");
      return { modelId: model_id, result: await resolve("create_model", answer.request_id) };
    },
    async unloadModel(modelId) {
      try {
        await transport.post("unload_model", { model_id: modelId, type: "unload_model" }, alive);
      } catch (error) {
        // When we are done with a model, it does not matter if its server is gone or has no such
        // call.
        if (!(error instanceof EngineError)) throw error;
      }
    },
    close() {
      clearInterval(timer);
      closed.abort(new EngineError("the engine was disposed"));
    },
  };
}

/** Parses an answer, or throws an error that names the call and the unexpected field. */
export function parse<S extends z.ZodType>(schema: S, body: unknown, call: string): z.output<S> {
  const read = schema.safeParse(body);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new EngineError(
    `the engine server's answer to ${call} is not as expected: ${issue!.path.join(".") || "it"}: ${issue!.message}`,
  );
}
