/** Batches questions that episodes ask at the same time. */
import type { Prediction, WorldModel, WorldQuery } from "./model.js";

interface Waiting {
  readonly queries: readonly WorldQuery[];
  resolve(predictions: readonly Prediction[]): void;
  reject(error: unknown): void;
}

/**
 * Collects the questions of one turn of the event loop: episodes in lock-step ask in the same turn.
 */
export function askTogether(model: WorldModel): WorldModel {
  let waiting: Waiting[] = [];
  const flush = async (signal?: AbortSignal): Promise<void> => {
    const asked = waiting;
    waiting = [];
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
        if (waiting.length === 0) setImmediate(() => void flush(signal));
        waiting.push({ queries, resolve, reject });
      }),
  };
}
