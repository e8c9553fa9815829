/**
 * A limit on the time of a computation in this thread, regular expressions included: V8 looks for
 * an interruption when they go back. A built-in that does not run code of ours, such as `includes`,
 * is not interrupted.
 */
import { type Context, createContext, Script } from "node:vm";

const script = new Script("compute()");
let context: Context | undefined;

/** What the function returns; what `late` makes is thrown if that takes longer. About 50 µs. */
export function withinTime<T>(milliseconds: number, compute: () => T, late: () => Error): T {
  context ??= createContext({});
  // A call inside a call replaces the function, but only after the outer one was fetched.
  context.compute = compute;
  try {
    return script.runInContext(context, { timeout: milliseconds }) as T;
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code === "ERR_SCRIPT_EXECUTION_TIMEOUT") throw late();
    throw error;
  } finally {
    context.compute = undefined;
  }
}
