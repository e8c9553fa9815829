/** The calls of an AgentGym server. A call that may have arrived is repeated only if that is harmless. */

import { EnvError } from "@pawl/core/envs/env.js";
import { exchange, type Failure } from "@pawl/core/http/http-client.js";
import { urlPart } from "@pawl/core/plain-text.js";
import { isRecord } from "@pawl/core/text/tool.js";
import type { Dialect } from "./dialects.js";

/** An id of a world: a number in all servers known. */
export type WorldId = number | string;

/** What a server can be asked. */
export interface AgentGymServer {
  create(signal?: AbortSignal): Promise<WorldId>;
  reset(id: WorldId, task: number, signal?: AbortSignal): Promise<unknown>;
  observe(id: WorldId, signal?: AbortSignal): Promise<unknown>;
  step(id: WorldId, action: string, signal?: AbortSignal): Promise<Record<string, unknown>>;
  /** Gives a world back; false if the server has no such call. */
  close(id: WorldId): Promise<boolean>;
}

/** A busy server answers 503 without doing anything; AgentGym's client asks five times. */
const BUSY = 503;
const TRIES = 5;
const PAUSE_MS = 100;
/** As AgentGym's clients; the environment's own limit is usually shorter. */
const TIMEOUT_MS = 300_000;
const MAX_SHOWN = 200;

/** A server at an address. */
export function agentGymServer(url: string, dialect: Dialect): AgentGymServer {
  const call = (
    path: string,
    body: object | undefined,
    { repeatable = false, signal }: { repeatable?: boolean; signal?: AbortSignal | undefined },
  ): Promise<unknown> => {
    const method = path.startsWith("/observation") ? "GET" : "POST";
    const what = `${method} ${url}${dialect.path ?? ""}${path.split("?", 1)[0]}`;
    return exchange<unknown>({
      url: `${url}${dialect.path ?? ""}${path}`,
      retry: { timeoutMs: TIMEOUT_MS, retries: TRIES - 1, backoffMs: PAUSE_MS },
      repeatable,
      signal,
      init: () => ({
        method,
        ...(body !== undefined && {
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        }),
      }),
      judge: ({ status, bytes }): { readonly value: unknown } | Failure => {
        const text = bytes.toString("utf8");
        if (status !== 200)
          return {
            reason: `status ${status}: ${text.slice(0, MAX_SHOWN)}`,
            again: status === BUSY,
          };
        try {
          return { value: JSON.parse(text) as unknown };
        } catch {
          return { reason: `no JSON: ${text.slice(0, MAX_SHOWN)}`, again: false };
        }
      },
      failed: ({ reason }) => new EnvError(`agentgym: ${what} failed: ${reason}`),
    }).then((answer) => {
      // Faults come with status 200.
      if (isRecord(answer) && "error" in answer)
        throw new EnvError(`agentgym: ${what}: ${String(answer.error).slice(0, MAX_SHOWN)}`);
      return answer;
    });
  };
  const withId = (id: WorldId, body: object): object => ({ ...body, [dialect.id]: id });
  return {
    async create(signal) {
      const answer = await call("/create", dialect.create, { signal });
      const id = dialect.created === undefined ? answer : (answer as never)?.[dialect.created];
      if (typeof id !== "number" && typeof id !== "string")
        throw new EnvError(
          `agentgym: ${url}/create: expected an id${dialect.created === undefined ? "" : ` in "${dialect.created}"`}, got ${JSON.stringify(answer)?.slice(0, MAX_SHOWN)}. Is it another server than --env.server says?`,
        );
      return id;
    },
    reset: (id, task, signal) =>
      call("/reset", withId(id, dialect.reset(task)), { repeatable: true, signal }),
    observe: (id, signal) =>
      call(`/observation?${dialect.id}=${urlPart(String(id))}`, undefined, {
        repeatable: true,
        signal,
      }),
    async step(id, action, signal) {
      const answer = await call("/step", withId(id, { action }), { signal });
      if (!isRecord(answer))
        throw new EnvError(
          `agentgym: ${url}/step: expected an object, got ${JSON.stringify(answer)?.slice(0, MAX_SHOWN)}`,
        );
      return answer;
    },
    async close(id) {
      if (!dialect.closes) return false;
      try {
        await call("/close", withId(id, {}), { repeatable: true });
        return true;
      } catch {
        // Some versions of a server have no such call, whatever others of its kind do.
        return false;
      }
    },
  };
}
