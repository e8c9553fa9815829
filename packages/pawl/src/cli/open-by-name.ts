/** Opens a model by the name that a command was given. */
import { type EngineChoice, engineFor } from "@pawl/training/engines.js";
import { type OpenModel, openModel, openSavedModel } from "@pawl/training/open-model.js";
import { findModel } from "@pawl/training/saved-model.js";
import type { Call } from "./command.js";
import { fetchingOf } from "./fetching.js";

/** The model; the files of an engine server's own one are written to `servedFolder`. */
export async function openByName(
  name: string,
  servedFolder: string,
  chosen: EngineChoice,
  { io, signal }: Pick<Call<unknown>, "io" | "signal">,
): Promise<OpenModel> {
  if (name !== "served")
    return openSavedModel(await findModel(name, fetchingOf(io, signal)), chosen);
  const engine = engineFor(undefined, chosen);
  return openModel({ start: { served: true }, engine, servedFolder });
}
