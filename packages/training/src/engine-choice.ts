/** Which engine reads a saved model: the named one, or else that of the run that trained it. */
import type { z } from "zod";
import { type EngineOptions, engineOptions, isRemote } from "./engines.js";

const engine = engineOptions.unwrap();

/**
 * The engine of commands that only read models; settings not given come from each model's own run.
 */
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

/** The engine settings that were given. */
export type EngineChoice = z.output<typeof engineChoice>;

/**
 * The engine to read a model with, given the settings of the run that trained it, if any.
 *
 * Copies and samplers are for training only. A server's model names mean nothing to another engine.
 * What its adapters are belongs to the weights and is kept, except between the embedded engine and a
 * server, which adapt projections differently: there the adapters are read merged.
 */
export function engineFor(
  recorded: EngineOptions | undefined,
  chosen: EngineChoice = {},
): EngineOptions {
  const { address = "embedded", threads, model } = recorded ?? {};
  const { loraRank, loraAlpha, loraTargets } = recorded ?? {};
  const chosenAddress = chosen.address ?? address;
  const same = chosenAddress === address;
  return engineOptions.parse({
    ...(same && threads !== undefined && { threads }),
    ...(same && model !== undefined && { model }),
    ...(isRemote({ address: chosenAddress }) === isRemote({ address }) && {
      loraRank,
      loraAlpha,
      loraTargets,
    }),
    ...chosen,
    address: chosenAddress,
  });
}
