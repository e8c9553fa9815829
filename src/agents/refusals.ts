/**
 * Refused calls. A program may repeat a refused call for ever. So a refusal comes after a turn of the
 * event loop, which lets timers and signals run; and after many of them calls are never answered, which
 * stops the program for good, even after its episode.
 */
import { setImmediate } from "node:timers/promises";
import { messageOf } from "../errors.js";
import { SessionError } from "./session-error.js";

/** How a session refuses. */
export interface Refusals {
  /** Throws this error, soon or never. */
  refuse(error: unknown): Promise<never>;
  /** Rejects when calls are no longer refused. */
  readonly exhausted: Promise<never>;
}

/** Refuses calls so many times, those of one turn together; the next ones are never answered. */
export function createRefusals(limit = Number.POSITIVE_INFINITY): Refusals {
  let refused = 0;
  let turn: Promise<void> | undefined;
  let exhaust: (error: Error) => void = () => undefined;
  const exhausted = new Promise<never>((_, reject) => {
    exhaust = reject;
  });
  // It may be rejected when nothing awaits it.
  exhausted.catch(() => undefined);
  return {
    exhausted,
    async refuse(error) {
      if (refused >= limit) {
        exhaust(
          new SessionError(
            `the agent went on asking after it was refused ${limit} times: ${messageOf(error)}`,
          ),
        );
        return new Promise(() => undefined);
      }
      turn ??= setImmediate().then(() => {
        refused++;
        turn = undefined;
      });
      await turn;
      throw error;
    },
  };
}
