/** Calls to a worker thread: one message per call, one per answer. */
import { type MessagePort, Worker } from "node:worker_threads";
import { UserError } from "./errors.js";

/** Buffers that are transferred instead of copied. */
export type Moved = readonly ArrayBufferLike[];

interface Call {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

interface Reply {
  /** The id of the call. */
  readonly id: number;
  readonly result?: unknown;
  readonly error?: {
    readonly message: string;
    readonly stack: string | undefined;
    /** Whether it is a `UserError`, which is shown to the user unchanged. */
    readonly expected: boolean;
  };
}

/** The calling side of a worker thread. */
export interface Caller {
  call(method: string, args: readonly unknown[], moved?: Moved): Promise<unknown>;
  /** Whether the thread has ended, so that all calls fail. */
  readonly ended: boolean;
  end(): Promise<void>;
}

/** A worker thread to start. */
export interface Thread {
  /** The file, without its ending. */
  readonly file: URL;
  readonly workerData: unknown;
  /** What works in it, for errors: `the engine`. */
  readonly what: string;
  /** Makes the errors that are shown to the user. */
  fail(message: string, options?: ErrorOptions): Error;
}

/** Starts a worker thread. */
export function startCaller({ file, workerData, what, fail }: Thread): Caller {
  const worker = startWorker(file, workerData);
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let ended: Error | undefined;
  let lastId = 0;
  const end = (error: Error) => {
    ended ??= error;
    for (const { reject } of waiting.values()) reject(ended);
    waiting.clear();
  };
  worker.on("message", (reply: Reply) => {
    const call = waiting.get(reply.id);
    waiting.delete(reply.id);
    if (waiting.size === 0) worker.unref();
    if (reply.error === undefined) call?.resolve(reply.result);
    else call?.reject(toError(reply.error, fail));
  });
  worker.on("error", (error) =>
    end(fail(`${what}'s thread failed: ${String(error)}`, { cause: error })),
  );
  worker.on("exit", () => end(fail(`${what} was disposed, or its thread ended`)));
  return {
    call: (method, args, moved = []) => {
      if (ended !== undefined) return Promise.reject(ended);
      lastId += 1;
      const id = lastId;
      const answer = new Promise<unknown>((resolve, reject) => {
        waiting.set(id, { resolve, reject });
      });
      // An idle thread does not keep the process alive, a working one does.
      worker.ref();
      worker.postMessage({ id, method, args } satisfies Call, moved as ArrayBuffer[]);
      return answer;
    },
    get ended() {
      return ended !== undefined;
    },
    end: async () => {
      await worker.terminate();
    },
  };
}

/** The result of a call, and which of its buffers may be transferred. */
export interface Answer {
  readonly result: unknown;
  readonly moved?: Moved;
}

/** The answering side: executes one call after another. */
export function serve(
  port: MessagePort,
  perform: (method: string, args: readonly unknown[]) => Promise<Answer>,
): void {
  let queue: Promise<void> = Promise.resolve();
  port.on("message", ({ id, method, args }: Call) => {
    queue = queue.then(async () => {
      try {
        const { result, moved = [] } = await perform(method, args);
        port.postMessage({ id, result } satisfies Reply, moved as ArrayBuffer[]);
      } catch (error) {
        port.postMessage(failure(id, error));
      }
    });
  });
}

function failure(id: number, error: unknown): Reply {
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error ? error.stack : undefined;
  return { id, error: { message, stack, expected: error instanceof UserError } };
}

function toError(
  { message, stack, expected }: NonNullable<Reply["error"]>,
  fail: Thread["fail"],
): Error {
  const error = expected ? fail(message) : new Error(message);
  if (!expected && stack !== undefined) error.stack = stack;
  return error;
}

/** Starts a worker, always compiled: Node 20 cannot load TypeScript, and loaders take a second. */
function startWorker(file: URL, workerData: unknown): Worker {
  // Tests and benchmarks run from source, after a build.
  const built = import.meta.url.endsWith(".js")
    ? file.href
    : file.href.replace(
        new URL("./", import.meta.url).href,
        new URL("../dist/src/", import.meta.url).href,
      );
  return new Worker(new URL(`${built}.js`), { workerData });
}
