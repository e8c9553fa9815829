/** Which engine reads a saved model: the one that is named, else that of the run that trained it. */
import type { z } from "zod";
import { type EngineOptions, engineOptions, isRemote } from "./engines.js";

const engine = engineOptions.unwrap();

/** The engine of commands that only read models; what is not given is as in each model's own run. */
export const engineChoice = engine
  .pick({ threads: true, model: true })
  .extend({
    address: engine.shape.address
      .unwrap()
      .optional()
      .describe(
        "embedded, or the URL of an engine server (default: the engine of each model's run)",
      ),
  })
  .prefault({});

/** The settings of an engine, as far as they are given. */
export type EngineChoice = z.output<typeof engineChoice>;

/**
 * The engine to read a model with, given the settings of its run, if a run trained it.
 *
 * Of those, copies and samplers are for training alone. A server's models say nothing about another engine;
 * the rank of its adapters belongs to the weights and goes with them, except to this process, which has none.
 */
export function engineFor(
  recorded: EngineOptions | undefined,
  chosen: EngineChoice = {},
): EngineOptions {
  const { address = "embedded", threads, model, loraRank } = recorded ?? {};
  const chosenAddress = chosen.address ?? address;
  const same = chosenAddress === address;
  return engineOptions.parse({
    ...(same && threads !== undefined && { threads }),
    ...(same && model !== undefined && { model }),
    ...(isRemote({ address: chosenAddress }) && loraRank !== undefined && { loraRank }),
    ...chosen,
    address: chosenAddress,
  });
}
