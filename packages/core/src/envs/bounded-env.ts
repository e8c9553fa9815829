/**
 * A world with time limits. One that answers later is interrupted; one that answers at once cannot
 * be, because nothing else runs meanwhile: a slow answer of its is refused when it comes.
 */
import { type Env, EnvError, type RemoteEnv, type StepResult, type Task } from "./env.js";
import type { EnvLimits } from "./limits.js";

/** How long a world may take to close; then it is left behind. */
const CLOSE_SECONDS = 5;

/** What a rollout asks of a world. */
export interface BoundedEnv {
  reset(task: Task, seed: number): string | Promise<string>;
  step(action: string): StepResult | Promise<StepResult>;
  close(): Promise<void>;
}

/** The world with its limits; the signal interrupts it, too. */
export function boundedEnv(
  env: Env | RemoteEnv,
  limits: EnvLimits,
  signal?: AbortSignal,
): BoundedEnv {
  let spent = 0;
  const bounded = <T>(
    what: string,
    ask: (stop: AbortSignal | undefined) => T | Promise<T>,
  ): T | Promise<T> => {
    const seconds = Math.min(limits.stepSeconds, limits.episodeSeconds - spent);
    const tooSlow = (): EnvError =>
      new EnvError(
        seconds < limits.stepSeconds
          ? `the world took longer than env.limits.episodeSeconds, ${limits.episodeSeconds} s, for the episode`
          : `${what} took longer than env.limits.stepSeconds, ${limits.stepSeconds} s`,
      );
    const stop = "close" in env ? new AbortController() : undefined;
    const started = performance.now();
    const book = (answer: T): T => {
      const took = (performance.now() - started) / 1000;
      spent += took;
      if (took > seconds) throw tooSlow();
      return answer;
    };
    const answer = ask(stop?.signal);
    if (!isPromise(answer)) return book(answer);
    const onTime = within(answer, seconds, tooSlow, signal);
    // Whoever listens can stop working on an answer that nobody waits for.
    return onTime.then(book).catch((error: unknown) => {
      stop?.abort(error);
      throw error;
    });
  };
  return {
    reset(task, seed) {
      spent = 0;
      const start = () => bounded("reset", (stop) => env.reset(task, seed, stop));
      return "close" in env && env.prepare ? env.prepare().then(start) : start();
    },
    step: (action) => bounded("a step", (stop) => env.step(action, stop)),
    close: () => closeWorld(env),
  };
}

/** Closes a world, if it can be closed; not if that takes too long. */
export async function closeWorld(env: Env | RemoteEnv): Promise<void> {
  if (!("close" in env)) return;
  const tooSlow = () => new EnvError(`closing the world took longer than ${CLOSE_SECONDS} s`);
  await within(Promise.resolve(env.close()), CLOSE_SECONDS, tooSlow);
}

/** The answer, unless it comes too late or the signal comes first. */
function within<T>(
  answer: Promise<T>,
  seconds: number,
  tooSlow: () => Error,
  signal?: AbortSignal,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      settle();
    };
    const abort = (): void => end(() => reject(signal!.reason as Error));
    // Timers count to 2³¹ − 1 milliseconds.
    const timer =
      seconds < LONGEST_TIMER
        ? setTimeout(() => end(() => reject(tooSlow())), Math.max(0, seconds * 1000))
        : undefined;
    // First, since an answer that nobody waits for may still fail.
    answer.then(
      (value) => end(() => resolve(value)),
      (error: unknown) => end(() => reject(error as Error)),
    );
    if (signal?.aborted) return abort();
    signal?.addEventListener("abort", abort, { once: true });
  });
}

const LONGEST_TIMER = 2_000_000;

function isPromise<T>(answer: T | Promise<T>): answer is Promise<T> {
  return typeof (answer as { then?: unknown } | undefined)?.then === "function";
}
