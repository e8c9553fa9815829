/**
 * Errors that a user's program lets escape: a promise that nobody awaits, a throw in a timer. Node
 * ends the process at the first of them. Here they count as thrown by the program that they come
 * from, which the async context tells (Node 20 to 26 keep it in both events, but before 24 not for
 * `queueMicrotask`). One that comes from nowhere ends the command in progress, in an orderly way.
 *
 * Node's own behaviour changes only during work in which such programs may be running: what a module
 * starts when it is loaded fails before any episode.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate } from "node:timers/promises";
import { messageOf, UserError } from "../errors.js";

/** An error that escaped, and that belongs to no program in progress. */
export class EscapedError extends UserError {
  override readonly name = "EscapedError";

  constructor(error: unknown) {
    super(
      `an error was thrown outside of all episodes, and nobody caught it: ${messageOf(error)}${placeOf(error)}`,
      { cause: error },
    );
  }
}

function placeOf(error: unknown): string {
  try {
    const place = /\n\s+at (.+)/.exec(String((error as Error).stack))?.[1];
    return place === undefined ? "" : ` (at ${place})`;
  } catch {
    return "";
  }
}

type Take = (error: unknown) => void;

const owner = new AsyncLocalStorage<Take | undefined>();

/** What is ended by errors that belong to nobody. */
const works = new Set<Take>();
let release: (() => void) | undefined;

/**
 * Gives errors that escape to the program that they come from, and the others to `unowned`; returns
 * how to stop that.
 */
export function catchEscaped(unowned: Take): () => void {
  const take = (error: unknown): void => (owner.getStore() ?? unowned)(error);
  process.on("uncaughtException", take);
  process.on("unhandledRejection", take);
  return () => {
    process.off("uncaughtException", take);
    process.off("unhandledRejection", take);
  };
}

/**
 * Runs a user's program. An error that it lets escape until it has returned counts as thrown by it;
 * later ones count for nothing, because nobody waits for what it left behind.
 */
export async function runOwned<T>(program: () => T): Promise<Awaited<T>> {
  let fail: Take = () => undefined;
  const escaped = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const running = owner.run(fail, async () => {
    const result = await program();
    // Node tells of a rejected promise once it has nothing else to do.
    await setImmediate();
    return result;
  });
  return Promise.race([running, escaped]);
}

/** Tells a program that it is over; what its listeners let escape counts for nothing. */
export function disregarding(tell: () => void): void {
  owner.run(() => undefined, tell);
}

/** Does something that is not the program's, though the program asked for it. */
export function notOwned<T>(work: () => T): T {
  return owner.run(undefined, work);
}

/** Work in which users' programs run: an error that belongs to none of them aborts and ends it. */
export async function endedByEscaped<T>(
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const interrupt = (): void => stop.abort(signal!.reason);
  if (signal?.aborted) interrupt();
  signal?.addEventListener("abort", interrupt, { once: true });
  const end: Take = (error) => stop.abort(new EscapedError(error));
  works.add(end);
  release ??= catchEscaped((error) => {
    for (const each of works) each(error);
  });
  try {
    const result = await work(stop.signal);
    if (stop.signal.reason instanceof EscapedError) throw stop.signal.reason;
    return result;
  } catch (error) {
    throw stop.signal.reason instanceof EscapedError ? stop.signal.reason : error;
  } finally {
    signal?.removeEventListener("abort", interrupt);
    works.delete(end);
    if (works.size === 0) {
      release?.();
      release = undefined;
    }
  }
}
