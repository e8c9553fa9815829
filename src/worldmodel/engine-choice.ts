/** Which engine reads a saved model: the one that is named, else that of the run that trained it. */
import type { z } from "zod";
import { type EngineOptions, engineOptions } from "../train/engines.js";

const engine = engineOptions.unwrap();

/** The engine of commands that only read models; what is not given is as in each model's own run. */
export const engineChoice = engine
  .pick({ threads: true, model: true })
  .extend({
    name: engine.shape.name
      .unwrap()
      .optional()
      .describe(
        "embedded, or an engine server's http://…; default: the engine of each model's run",
      ),
  })
  .prefault({});

/** The settings of an engine, as far as they are given. */
export type EngineChoice = z.output<typeof engineChoice>;

/** The engine to read a model with, given the settings of its run, if a run trained it. */
export function engineFor(
  recorded: EngineOptions | undefined,
  chosen: EngineChoice = {},
): EngineOptions {
  // A server's settings say nothing about another engine, and those of training nothing about reading.
  const same = chosen.name === undefined || chosen.name === recorded?.name;
  return engineOptions.parse({
    ...(same && recorded && { name: recorded.name, threads: recorded.threads }),
    ...(same && recorded?.model !== undefined && { model: recorded.model }),
    ...chosen,
  });
}
