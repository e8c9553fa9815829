/**
 * A world with time limits. One that answers later is interrupted; one that answers at once cannot
 * be, because nothing else runs meanwhile: a slow answer of its is refused when it comes.
 */
import { type Env, EnvError, type RemoteEnv, type StepResult, type Task } from "./env.js";
import type { EnvLimits } from "./limits.js";

/** A step's result, with an observation that is too long cut if the limits say so. */
export function checkStep(result: StepResult, limits: EnvLimits): StepResult {
  if (typeof result !== "object" || result === null)
    throw new EnvError(
      `step gave ${show(result)}, expected { observation, reward, done, info: { valid, success } }`,
    );
  const { reward, done, info } = result;
  const observation = checkText(result.observation, "the observation", limits);
  if (typeof reward !== "number" || !Number.isFinite(reward))
    throw new EnvError(`the reward is ${show(reward)}, expected a finite number`);
  if (typeof done !== "boolean")
    throw new EnvError(`done is ${show(done)}, expected true or false`);
  if (typeof info !== "object" || info === null)
    throw new EnvError(`info is ${show(info)}, expected { valid, success }`);
  if (typeof info.valid !== "boolean" || typeof info.success !== "boolean")
    throw new EnvError(
      `info says valid: ${show(info.valid)}, success: ${show(info.success)}; expected true or false for each`,
    );
  if (info.score !== undefined && !Number.isFinite(info.score))
    throw new EnvError(`info.score is ${show(info.score)}, expected a number from 0 to 1 or none`);
  return observation === result.observation ? result : { ...result, observation };
}

/** A text of the world's, cut if it is too long and the limits say so. */
export function checkText(text: unknown, what: string, limits: EnvLimits): string {
  if (typeof text !== "string")
    throw new EnvError(
      `${what} is ${show(text)}, expected text: describe images and other data in words`,
    );
  if (text.length <= limits.observation) return text;
  const found = `${text.length.toLocaleString("en")} characters`;
  const most = limits.observation.toLocaleString("en");
  if (limits.tooLong === "break")
    throw new EnvError(`${what} has ${found}, more than env.limits.observation, ${most}`);
  // Not in the middle of a character that takes two units.
  const end = /[\uD800-\uDBFF]/.test(text[limits.observation - 1]!)
    ? limits.observation - 1
    : limits.observation;
  return `${text.slice(0, end)}\n[cut here: it had ${found}]`;
}

/** A list of actions, if the world lists them. */
export function checkAdmissible(actions: unknown): readonly string[] | undefined {
  if (actions === undefined) return undefined;
  if (!Array.isArray(actions))
    throw new EnvError(`admissibleActions gave ${show(actions)}, expected a list of texts`);
  for (const action of actions)
    if (typeof action !== "string")
      throw new EnvError(`admissibleActions lists ${show(action)}, expected texts only`);
  return actions;
}

const LONGEST_SHOWN = 60;

function show(value: unknown): string {
  if (value === undefined || value === null || typeof value === "number") return String(value);
  if (value instanceof Uint8Array) return "bytes";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object")
    return `an object with ${Object.keys(value).join(", ") || "nothing"}`;
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return `${text.slice(0, LONGEST_SHOWN)} (a ${typeof value})`;
}

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
