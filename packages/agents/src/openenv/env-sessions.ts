/**
 * The sessions of `pawl serve env`: bounded in number and idle time, each with a world of its own. A
 * call without a session has one for as long as it lasts.
 */
import { randomUUID } from "node:crypto";
import type { Environment } from "@pawl/core/envs/env.js";
import { HttpError } from "@pawl/core/http/http-server.js";
import { type ServedEpisode, serveEpisode } from "./served-episode.js";

/** A session. */
export interface EnvSession {
  readonly id: string;
  readonly episode: ServedEpisode;
  /** Messages that wait or are being answered. */
  readonly pending: number;
  /** Whether a socket is attached to it. */
  attached: boolean;
  /** Does something after everything that was asked before; at once if nothing is under way. */
  inOrder<T>(work: () => T | Promise<T>): T | Promise<T>;
}

/** All sessions. */
export interface EnvSessions {
  /** Those that are open. */
  readonly size: number;
  /** Starts one; undefined if there are too many. */
  start(onIdle?: () => void): EnvSession | undefined;
  /** Asks a world that is thrown away then; refused if there are too many. */
  once<T>(work: (episode: ServedEpisode) => T | Promise<T>): Promise<T>;
  find(id: string): EnvSession | undefined;
  /** Ends it, and what its world is doing. */
  end(id: string): Promise<void>;
  close(): Promise<void>;
}

/** No sessions yet. */
export function createEnvSessions(
  environment: Environment,
  { maxSessions, idleMs }: { readonly maxSessions: number; readonly idleMs: number },
  onFault?: (error: unknown) => void,
): EnvSessions {
  const open = new Map<string, Session>();
  const end = async (id: string): Promise<void> => {
    const found = open.get(id);
    open.delete(id);
    await found?.end().catch((error: unknown) => onFault?.(error));
  };
  const timer = setInterval(
    () => {
      const before = performance.now() - idleMs;
      for (const session of open.values())
        if (session.pending === 0 && session.used < before) {
          void end(session.id);
          session.onIdle?.();
        }
    },
    Math.max(10, idleMs / 4),
  );
  timer.unref();
  const start = (onIdle?: () => void): Session | undefined => {
    if (open.size >= maxSessions) return undefined;
    const session = createSession(environment, onIdle);
    open.set(session.id, session);
    return session;
  };
  return {
    get size() {
      return open.size;
    },
    start,
    async once(work) {
      const session = start();
      if (session === undefined)
        throw new HttpError(503, `${maxSessions} sessions are open, which is the limit: try later`);
      try {
        return await session.inOrder(() => work(session.episode));
      } finally {
        await end(session.id);
      }
    },
    find: (id) => open.get(id),
    end,
    async close() {
      clearInterval(timer);
      await Promise.all([...open.keys()].map(end));
    },
  };
}

interface Session extends EnvSession {
  readonly used: number;
  readonly onIdle: (() => void) | undefined;
  end(): Promise<void>;
}

function createSession(environment: Environment, onIdle: (() => void) | undefined): Session {
  const stop = new AbortController();
  const episode = serveEpisode(environment, stop.signal);
  let pending = 0;
  let used = performance.now();
  let last: Promise<unknown> = Promise.resolve();
  const done = (): void => {
    pending--;
    used = performance.now();
  };
  return {
    id: randomUUID(),
    episode,
    onIdle,
    attached: false,
    get pending() {
      return pending;
    },
    get used() {
      return used;
    },
    inOrder(work) {
      used = performance.now();
      if (pending++ === 0) {
        let answer: ReturnType<typeof work>;
        try {
          answer = work();
        } catch (error) {
          done();
          throw error;
        }
        if (!(answer instanceof Promise)) {
          done();
          return answer;
        }
        last = answer.then(done, done);
        return answer;
      }
      const answer = last.then(work);
      last = answer.then(done, done);
      return answer;
    },
    async end() {
      stop.abort(new Error("the session has ended"));
      await last;
      await episode.close();
    },
  };
}
