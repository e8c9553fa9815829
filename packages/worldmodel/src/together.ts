/** Batches questions that episodes ask at the same time. */
import type { Prediction, WorldModel, WorldQuery } from "./model.js";

interface Waiting {
  readonly queries: readonly WorldQuery[];
  readonly signal: AbortSignal | undefined;
  resolve(predictions: readonly Prediction[]): void;
  reject(error: unknown): void;
}

/**
 * Collects the questions of one turn of the event loop: episodes in lock-step ask in the same turn.
 * Sessions of a server ask whenever they like: what comes while the model answers waits, and is then
 * asked together.
 */
export function askTogether(model: WorldModel): WorldModel {
  let waiting: Waiting[] = [];
  let answering = Promise.resolve();
  const flush = async (): Promise<void> => {
    const asked = waiting;
    waiting = [];
    const signal = whenAllLeft(asked);
    try {
      const predictions = await model.predict(
        asked.flatMap(({ queries }) => queries),
        signal,
      );
      let from = 0;
      for (const { queries, resolve } of asked) {
        resolve(predictions.slice(from, from + queries.length));
        from += queries.length;
      }
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  };
  return {
    ...model,
    predict: (queries, signal) =>
      new Promise((resolve, reject) => {
        if (waiting.length === 0)
          setImmediate(() => {
            answering = answering.then(flush);
          });
        waiting.push({ queries, signal, resolve, reject });
      }),
  };
}

/** Aborted once nobody waits any more: one who leaves must not take the others' answers along. */
function whenAllLeft(asked: readonly Waiting[]): AbortSignal | undefined {
  const signals = asked.flatMap(({ signal }) => signal ?? []);
  if (signals.length < asked.length) return undefined;
  const all = new AbortController();
  const check = (): void => {
    if (signals.every(({ aborted }) => aborted)) all.abort(signals[0]!.reason);
  };
  for (const signal of signals) signal.addEventListener("abort", check, { once: true });
  check();
  return all.signal;
}
