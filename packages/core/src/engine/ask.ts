/**
 * Calls that many episodes wait for together. An engine failure says nothing about any single
 * episode: if only the running ones were dropped, an update would learn from the quick ones alone.
 * So a failed call is repeated once, with the same result because draws are seeded; then the caller
 * stops.
 */
import { EngineError } from "./engine.js";

/** An engine failed twice in a row. This ends the whole rollout, not one episode. */
export class EngineFailure extends EngineError {}

/** The result of a call that changes nothing, repeated once if the engine fails. */
export async function askEngine<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch {
    try {
      return await call();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new EngineFailure(`the engine failed twice in a row: ${message}`, { cause: error });
    }
  }
}
