/** The time that a program takes by itself, without that of the model's answers. */
import type { EnvLimits } from "../envs/limits.js";

/** Runs while the program does, and stands still while it waits for the model. */
export interface Stopwatch {
  /** Stands still until this is over. */
  pause<T>(wait: () => Promise<T>): Promise<T>;
  /** Rejects when the program has taken too long. */
  readonly overdue: Promise<never>;
  stop(): void;
}

/** Starts a stopwatch; without the time of an episode or between two calls it never ends. */
export function startStopwatch({
  stepSeconds,
  episodeSeconds,
}: Pick<EnvLimits, "stepSeconds" | "episodeSeconds">): Stopwatch {
  let spent = 0;
  let waiting = 0;
  let since = performance.now();
  let timer: NodeJS.Timeout | undefined;
  let tooLate: (error: Error) => void = () => undefined;
  const overdue = new Promise<never>((_, reject) => {
    tooLate = reject;
  });
  // It may be rejected when nothing awaits it.
  overdue.catch(() => undefined);
  const start = (): void => {
    since = performance.now();
    const left = episodeSeconds - spent;
    const message =
      left < stepSeconds
        ? `the agent took longer than env.limits.episodeSeconds, ${episodeSeconds} s, for the episode`
        : `the agent did not ask the model for longer than env.limits.stepSeconds, ${stepSeconds} s`;
    timer = setTimeout(
      () => tooLate(new Error(message)),
      Math.min(1000 * Math.max(0, Math.min(stepSeconds, left)), LONGEST_MS),
    );
  };
  start();
  return {
    overdue,
    async pause(wait) {
      if (waiting++ === 0) {
        clearTimeout(timer);
        spent += (performance.now() - since) / 1000;
      }
      try {
        return await wait();
      } finally {
        if (--waiting === 0) start();
      }
    },
    stop() {
      clearTimeout(timer);
      waiting = Number.POSITIVE_INFINITY;
    },
  };
}

/** The longest that a timer waits. */
const LONGEST_MS = 2 ** 31 - 1;
