/** The sessions of an endpoint, by the name in their address: bounded in number and idle time. */
import { randomUUID } from "node:crypto";
import type { RecordedSession } from "../session.js";
import type { Memory } from "./api.js";
import { Refusal } from "./refusal.js";
import { type SessionRecord, sessionRecord } from "./session-record.js";

/** A session that has not ended. */
export interface OpenSession {
  readonly id: string;
  readonly session: RecordedSession;
  /** Milliseconds since 1970. */
  readonly created: number;
  /** The calls that are being answered: they are aborted when it ends. */
  readonly running: Set<AbortController>;
  /** Answers that its client may refer to. */
  readonly memory: Memory;
}

/** The sessions of an endpoint. */
export interface Sessions {
  readonly open: ReadonlyMap<string, OpenSession>;
  /** Starts one; without a name it gets one. */
  start(id?: string, seed?: number, memory?: Memory): OpenSession;
  /** The open session of this name; one that has ended is refused. */
  find(id: string): OpenSession | undefined;
  /**
   * Counts what it keeps of a call until it ends; refused if all sessions keep too much. Returns what
   * to do if the call fails, and nothing of it is kept.
   */
  keep(session: OpenSession, characters: number): () => void;
  /** Says that it is in use. */
  touch(session: OpenSession): void;
  /** Ends it, with the calls that are being answered, and returns its record. */
  end(id: string, why: string): SessionRecord;
  /** Ends all of them. */
  close(why: string): void;
}

/** What sessions are made from, and their limits. */
export interface SessionsOptions {
  create(id: string, seed: number | undefined): RecordedSession;
  readonly maxSessions: number;
  /** Characters that all open sessions keep. */
  readonly maxKept: number;
  readonly idleMs: number;
  onEnd?(record: SessionRecord): void;
}

/** No answers yet. */
export const newMemory = (): Memory => ({ conversations: new Map(), items: new Map() });

/** Names of ended sessions that are remembered, so that they are not started again by mistake. */
const MAX_ENDED = 100_000;
const validId = /^[\w.~-]{1,128}$/;

/** No sessions yet. */
export function createSessions(options: SessionsOptions): Sessions {
  const { create, maxSessions, maxKept, idleMs, onEnd } = options;
  const open = new Map<string, OpenSession & { used: number; kept: number }>();
  let kept = 0;
  const ended = new Set<string>();

  const end = (id: string, why: string): SessionRecord => {
    const entry = open.get(id)!;
    open.delete(id);
    kept -= entry.kept;
    ended.add(id);
    if (ended.size > MAX_ENDED) ended.delete(ended.values().next().value!);
    entry.session.end();
    for (const call of entry.running)
      call.abort(new Refusal(410, `session ${id} ended: ${why}`, { code: "session_ended" }));
    const record = sessionRecord(entry);
    onEnd?.(record);
    return record;
  };
  const expire = () => {
    const before = Date.now() - idleMs;
    for (const { id, used, running } of open.values())
      if (used < before && running.size === 0) end(id, "nobody used it");
  };
  const find = (id: string): OpenSession | undefined => {
    if (!validId.test(id))
      throw new Refusal(400, "a session's name has 1 to 128 letters, digits, _, ., ~ or -");
    if (ended.has(id))
      throw new Refusal(410, `session ${id} has ended; use another name for another episode`, {
        code: "session_ended",
      });
    return open.get(id);
  };
  const timer = setInterval(expire, Math.max(10, idleMs / 4));
  timer.unref();

  return {
    open,
    find,
    end,
    keep: ({ id }, characters) => {
      const entry = open.get(id)!;
      if (kept + characters > maxKept)
        throw new Refusal(
          429,
          `open sessions keep ${kept} characters, and at most ${maxKept} fit: end some with DELETE /sessions/ID`,
          { code: "too_much_kept", retryAfter: 1 },
        );
      const count = (more: number): void => {
        kept += more;
        entry.kept += more;
      };
      count(characters);
      return () => {
        if (open.get(id) === entry) count(-characters);
      };
    },
    touch: ({ id }) => {
      const entry = open.get(id);
      if (entry !== undefined) entry.used = Date.now();
    },
    start: (id = randomUUID(), seed, memory = newMemory()) => {
      if (find(id) !== undefined)
        throw new Refusal(409, `session ${id} is open already`, { code: "session_exists" });
      if (open.size >= maxSessions)
        throw new Refusal(
          429,
          `${maxSessions} sessions are open, which is the limit: end some with DELETE /sessions/ID`,
          { code: "too_many_sessions", retryAfter: 1 },
        );
      const now = Date.now();
      const started = {
        id,
        session: create(id, seed),
        created: now,
        used: now,
        kept: 0,
        running: new Set<AbortController>(),
        memory,
      };
      open.set(id, started);
      return started;
    },
    close: (why) => {
      clearInterval(timer);
      for (const id of [...open.keys()]) end(id, why);
    },
  };
}
