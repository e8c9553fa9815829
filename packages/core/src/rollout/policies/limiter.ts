/** A limiter: at most this many tasks run at a time, the others wait in a queue. */

/** Runs work when a slot is free; an abort ends the wait at once. */
export type Limiter = <T>(work: () => Promise<T>, signal?: AbortSignal) => Promise<T>;

/** A limiter with `count` slots. */
export function limiter(count: number): Limiter {
  let free = count;
  const line = new Set<() => void>();

  const enter = (signal?: AbortSignal): Promise<void> => {
    signal?.throwIfAborted();
    if (free > 0) {
      free--;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const stop = () => {
        line.delete(go);
        reject(signal?.reason);
      };
      const go = () => {
        signal?.removeEventListener("abort", stop);
        resolve();
      };
      line.add(go);
      signal?.addEventListener("abort", stop, { once: true });
    });
  };
  const leave = () => {
    const [next] = line;
    if (next === undefined) {
      free++;
    } else {
      line.delete(next);
      next();
    }
  };

  return async (work, signal) => {
    await enter(signal);
    try {
      return await work();
    } finally {
      leave();
    }
  };
}
