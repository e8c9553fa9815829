/**
 * Simulators that are started when they are needed and kept for the next episode. Every running
 * world has one to itself, because the simulator's state is global to its process.
 */
import type { Simulator } from "./simulator.js";

/** A pool of simulators. */
export interface Pool {
  /** A simulator for one world. */
  take(): Promise<Simulator>;
  /** Gives it back: it is kept if it is alive, idle, and not one too many. */
  give(simulator: Simulator): void;
  /** Ends those that are not in use. */
  clear(): void;
}

/** A pool that keeps up to `most` idle simulators. */
export function createPool(most: number, start: () => Promise<Simulator>): Pool {
  const idle: Simulator[] = [];
  return {
    async take() {
      for (let next = idle.pop(); next !== undefined; next = idle.pop()) {
        // One may have died while it was idle.
        if (next.alive) return next;
      }
      return start();
    },
    give(simulator) {
      if (!simulator.alive) return;
      if (simulator.busy) simulator.end("its world was closed while it answered");
      else if (idle.length >= most) simulator.end("it was one too many");
      else idle.push(simulator);
    },
    clear() {
      for (const simulator of idle.splice(0)) simulator.end("the pool was cleared");
    },
  };
}
