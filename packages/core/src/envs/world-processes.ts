/**
 * The processes of isolated worlds: as many as are needed at once, but never more than a limit. Who
 * comes when all are in use waits for one.
 */
import type { Caller } from "../processes/calls.js";

/** Processes at once; each takes some 60 MB and what the world itself needs. */
export const MAX_PROCESSES = 16;

/** Lends processes to worlds. */
export interface WorldProcesses {
  /** A process for one world; waits until there is one. */
  take(signal: AbortSignal): Promise<Caller>;
  /** One at once, for who cannot wait; undefined if all are in use. */
  takeNow(): Caller | undefined;
  /** Keeps a process for the next world, unless it has ended. */
  giveBack(one: Caller): void;
  /** Ends those that are not in use. */
  close(): Promise<void>;
}

/** No processes yet; `start` starts one and says when it is gone. */
export function createWorldProcesses(start: (onGone: () => void) => Caller): WorldProcesses {
  const idle: Caller[] = [];
  const waiting: (() => void)[] = [];
  let alive = 0;
  const takeNow = (): Caller | undefined => {
    for (let one = idle.pop(); one !== undefined; one = idle.pop()) if (!one.ended) return one;
    if (alive >= MAX_PROCESSES) return undefined;
    alive += 1;
    return start(() => {
      alive -= 1;
      waiting.shift()?.();
    });
  };
  return {
    takeNow,
    async take(signal) {
      for (;;) {
        signal.throwIfAborted();
        const one = takeNow();
        if (one !== undefined) return one;
        await new Promise<void>((resolve) => {
          const leave = (): void => {
            waiting.splice(waiting.indexOf(come), 1);
            resolve();
          };
          const come = (): void => {
            signal.removeEventListener("abort", leave);
            resolve();
          };
          waiting.push(come);
          signal.addEventListener("abort", leave, { once: true });
        });
      }
    },
    giveBack(one) {
      if (one.ended) return;
      idle.push(one);
      waiting.shift()?.();
    },
    async close() {
      await Promise.all(idle.splice(0).map((one) => one.end()));
    },
  };
}
