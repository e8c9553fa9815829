/** The HTTP calls of `pawl serve env`: what the environment is, its tasks, and its tools. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { EnvError, type Environment } from "@pawl/core/envs/env.js";
import {
  HttpError,
  type MemoryBudget,
  pathOf,
  readJson,
  sendJson,
} from "@pawl/core/http/http-server.js";
import { isRecord } from "@pawl/core/text/tool.js";
import { z } from "zod";
import { answerRpc, RpcError } from "../mcp/tool-methods.js";
import type { ServedSchema } from "./env-schema.js";
import { callMethod, errorsOf } from "./env-session.js";
import type { EnvSessions } from "./env-sessions.js";
import { resetRequest } from "./protocol.js";
import { taskAt } from "./served-episode.js";

/** What the calls are about. */
export interface HttpContext {
  readonly environment: Environment;
  readonly served: ServedSchema;
  readonly sessions: EnvSessions;
  readonly maxSessions: number;
  readonly maxMessageBytes: number;
  /** What messages that are read or wait may take together. */
  readonly budget: MemoryBudget;
}

const split = z.string();
const bodies = {
  tasks: z.strictObject({ split }),
  num_tasks: z.strictObject({ split }),
  task: z.strictObject({ split, index: z.int() }),
  task_range: z.strictObject({
    split,
    start: z.int().min(0).nullish(),
    stop: z.int().min(0).nullish(),
  }),
};

/** Answers a call. */
export async function answerHttp(
  asked: IncomingMessage,
  reply: ServerResponse,
  context: HttpContext,
): Promise<void> {
  const path = pathOf(asked);
  const { environment, served, maxMessageBytes: maxBytes, budget } = context;
  /** The JSON of a POST, within the server's memory. */
  const bodyOf = (missing?: unknown): Promise<unknown> => {
    allow(asked, "POST");
    return readJson(asked, { maxBytes, take: budget.lease(reply), missing });
  };
  const get = (body: unknown): void => {
    allow(asked, "GET");
    sendJson(reply, 200, body);
  };
  switch (path) {
    case "/schema":
      return get(served.schema);
    case "/metadata":
      return get(served.metadata);
    case "/list_environments":
      return get([environment.name]);
    case "/state":
      return get({ episode_id: null, step_count: 0, step_limit: environment.stepLimit });
    case "/reset":
      return sendJson(reply, 200, await resetOnce(await bodyOf({}), context));
    case "/step":
      return stepOnce(await bodyOf(), context);
    case "/mcp":
      return sendJson(reply, 200, await callTools(await bodyOf(), context));
  }
  const [, name, call] = /^\/([^/]+)\/(splits|tasks|num_tasks|task|task_range)$/.exec(path) ?? [];
  if (name === undefined)
    throw new HttpError(
      404,
      "available: /ws, GET /health /schema /metadata /state /list_environments /NAME/splits, POST /reset /step /mcp /NAME/tasks /NAME/num_tasks /NAME/task /NAME/task_range",
    );
  if (name.toLowerCase() !== environment.name.toLowerCase())
    throw new HttpError(404, `unknown environment ${name}; this is ${environment.name}`);
  if (call === "splits") return get(environment.splits.map(splitOf));
  sendJson(reply, 200, answerTasks(environment, call as keyof typeof bodies, await bodyOf()));
}

function allow({ method = "" }: IncomingMessage, expected: string): void {
  if (method !== expected) throw new HttpError(405, `expected ${expected}, not ${method}`);
}

/** The split with its type, which the protocol knows three of. */
const splitOf = (name: string): object => ({
  name,
  type: /^train/.test(name) ? "train" : /^test/.test(name) ? "test" : "validation",
});

function answerTasks(environment: Environment, call: keyof typeof bodies, given: unknown): object {
  const asked = parsed(bodies[call], given) as {
    readonly split: string;
    readonly index?: number;
    readonly start?: number | null;
    readonly stop?: number | null;
  };
  try {
    const tasks = environment.tasks(asked.split);
    const numbered = tasks.map((task, index) => ({ ...task, index }));
    switch (call) {
      case "num_tasks":
        return { num_tasks: tasks.length };
      case "task":
        taskAt(tasks, asked.index!);
        return { task: numbered[asked.index!] };
      case "tasks":
        return { tasks: numbered, env_name: environment.name };
      case "task_range":
        return { tasks: numbered.slice(asked.start ?? 0, asked.stop ?? undefined) };
    }
  } catch (error) {
    throw error instanceof EnvError ? new HttpError(400, error.message) : error;
  }
}

/** A first observation; its world is thrown away, as the protocol has it. */
async function resetOnce(body: unknown, { sessions }: HttpContext): Promise<object> {
  parsed(resetRequest, body);
  try {
    return await sessions.once((episode) => episode.reset(body));
  } catch (error) {
    throw error instanceof EnvError ? new HttpError(400, error.message) : error;
  }
}

/** A step without a session meets a world that was never reset: the official server fails, too. */
function stepOnce(body: unknown, _context: HttpContext): never {
  if (!isRecord(body) || !isRecord(body.action))
    throw new Unprocessable([{ type: "missing", loc: ["body", "action"], msg: "Field required" }]);
  throw new HttpError(
    500,
    "over HTTP there is no session, so the world was never reset: play episodes over the WebSocket /ws",
  );
}

/** JSON-RPC: sessions, and the tools of one. */
async function callTools(message: unknown, context: HttpContext): Promise<object> {
  const { sessions, maxSessions } = context;
  const params = isRecord(message) && isRecord(message.params) ? message.params : {};
  const method = isRecord(message) ? message.method : undefined;
  const { session_id: id, ...own } = params;
  if (method === "openenv/session/create" || method === "openenv/session/close") {
    const answer = await answerRpc(message, async () => {
      if (method === "openenv/session/create") {
        const session = sessions.start();
        if (session === undefined)
          throw new RpcError(-32_000, `${maxSessions} sessions are open, which is the limit`);
        return { session_id: session.id };
      }
      if (typeof id !== "string" || sessions.find(id) === undefined)
        throw new RpcError(-32_602, `Unknown session_id: ${JSON.stringify(id)}`);
      await sessions.end(id);
      return { session_id: id, closed: true };
    });
    return answer ?? {};
  }
  // Without a session there is a world for this call alone.
  if (id === undefined) return sessions.once((episode) => callMethod(episode, message));
  const session = typeof id === "string" ? sessions.find(id) : undefined;
  if (session === undefined)
    return (await answerRpc(message, () => {
      throw new RpcError(-32_602, `Unknown session_id: ${JSON.stringify(id)}`);
    }))!;
  return session.inOrder(() =>
    callMethod(session.episode, { ...(message as object), params: own }),
  );
}

/** A body that does not fit, as FastAPI says so. */
export class Unprocessable extends HttpError {
  constructor(readonly detail: readonly object[]) {
    super(422, "the body does not fit");
  }
}

function parsed<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const result = schema.safeParse(body);
  if (!result.success) throw new Unprocessable(errorsOf(result.error));
  return result.data;
}
