/**
 * Calls to a worker thread or a process of ours: one message per call, one per answer, and before it
 * any number that say how far it is.
 */
import { join } from "node:path";
import { UserError } from "../errors.js";
import { packageFolder } from "../version.js";

/** Buffers that are transferred instead of copied. */
type Moved = readonly ArrayBufferLike[];

interface Call {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

interface Reply {
  /** The id of the call. */
  readonly id: number;
  /** How far the call is: there is more to come. */
  readonly progress?: unknown;
  readonly result?: unknown;
  readonly error?: {
    readonly message: string;
    readonly stack: string | undefined;
    /** Whether it is a `UserError`, which is shown to the user unchanged. */
    readonly expected: boolean;
  };
}

/** The calling side. */
export interface Caller {
  call(
    method: string,
    args: readonly unknown[],
    moved?: Moved,
    onProgress?: (progress: unknown) => void,
  ): Promise<unknown>;
  /** Whether the other side has ended, so that all calls fail. */
  readonly ended: boolean;
  end(): Promise<void>;
}

/** The other side, as the calling one sees it. */
export interface Callee {
  send(message: object, moved: Moved): void;
  /** Whether calls are waiting: an idle callee must not keep the process alive, a working one does. */
  work(isWorking: boolean): void;
  end(): Promise<void>;
}

/** Makes the errors that are shown to the user. */
export type Fail = (message: string, options?: ErrorOptions) => Error;

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
  readonly onProgress: ((progress: unknown) => void) | undefined;
}

/** The calling side of a callee, and what to tell it: an answer has come, or there will be none. */
export function createCaller(callee: Callee, fail: Fail) {
  const waiting = new Map<number, Waiting>();
  let ended: Error | undefined;
  let lastId = 0;
  const caller: Caller = {
    call: (method, args, moved = [], onProgress) => {
      if (ended !== undefined) return Promise.reject(ended);
      lastId += 1;
      const id = lastId;
      const answer = new Promise<unknown>((resolve, reject) => {
        waiting.set(id, { resolve, reject, onProgress });
      });
      callee.work(true);
      callee.send({ id, method, args } satisfies Call, moved);
      return answer;
    },
    get ended() {
      return ended !== undefined;
    },
    end: () => callee.end(),
  };
  return {
    caller,
    answered(message: unknown): void {
      const { id, progress, result, error } = message as Reply;
      const call = waiting.get(id);
      if (progress !== undefined) {
        call?.onProgress?.(progress);
        return;
      }
      waiting.delete(id);
      if (waiting.size === 0) callee.work(false);
      if (error === undefined) call?.resolve(result);
      else call?.reject(toError(error, fail));
    },
    lost(error: Error): void {
      ended ??= error;
      for (const { reject } of waiting.values()) reject(ended);
      waiting.clear();
      callee.work(false);
    },
  };
}

/** The result of a call, and which of its buffers may be transferred. */
export interface Answer {
  readonly result: unknown;
  readonly moved?: Moved;
}

/** Where calls come from and answers go. */
export interface Port {
  onMessage(listener: (message: unknown) => void): void;
  send(message: object, moved: Moved): void;
}

/** The answering side: executes one call after another. */
export function serve(
  port: Port,
  perform: (
    method: string,
    args: readonly unknown[],
    tell: (progress: unknown) => void,
  ) => Promise<Answer>,
): void {
  let queue: Promise<void> = Promise.resolve();
  port.onMessage((message) => {
    const { id, method, args } = message as Call;
    queue = queue.then(async () => {
      try {
        const { result, moved = [] } = await perform(method, args, (progress) =>
          port.send({ id, progress } satisfies Reply, []),
        );
        port.send({ id, result } satisfies Reply, moved);
      } catch (error) {
        port.send(failure(id, error), []);
      }
    });
  });
}

function failure(id: number, error: unknown): Reply {
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error ? error.stack : undefined;
  return { id, error: { message, stack, expected: error instanceof UserError } };
}

function toError({ message, stack, expected }: NonNullable<Reply["error"]>, fail: Fail): Error {
  const error = expected ? fail(message) : new Error(message);
  if (!expected && stack !== undefined) error.stack = stack;
  return error;
}

/**
 * The built file of an entry of packaging/join.js, by its name there: Node 20 cannot load TypeScript, and loaders take
 * a second. Tests and benchmarks run from source, after a build.
 */
export function builtFile(name: string): string {
  return join(packageFolder(), "dist/lib", `${name}.js`);
}
