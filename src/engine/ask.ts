/**
 * Questions that many episodes wait for together. An engine that fails has nothing to do with any one of them:
 * were only those still running dropped, an update would learn from the quick ones alone. So the question is
 * asked once more, which is the same question, because draws are seeded; then whatever asked it stops.
 */
import { EngineError } from "./engine.js";

/** An engine did not answer twice in a row. It ends what is being played, not one episode. */
export class EngineFailure extends EngineError {}

/** The answer to a call that changes nothing, asked for again once where the engine fails. */
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
