/** The name of a model on the command line, as in every `pawl model` command. */
import { ConfigError } from "@pawl/core/config/config-error.js";
import { isPreset } from "@pawl/engine-cpu/init.js";

/** What such a name may be, for help. */
export const MODEL_NAMES =
  "MODEL is a run, a model folder, a .gguf file, a hub id (OWNER/NAME, OWNER/NAME@REVISION, OWNER/NAME/FILE.gguf),\npypi:NAME (pawl model pull --help lists them), or served: an engine server's own model.";

/** Whether the name is a word, for a model that belongs to no run. */
export const isWithoutRun = (name: string): boolean => isPreset(name) || name === "served";

/** The name that was given; a model from scratch has nothing to show yet. */
export function requireModel(command: string, positionals: readonly string[]): string {
  const [name] = positionals;
  if (name === undefined)
    throw new ConfigError(`pawl ${command} needs a model: pawl ${command} MODEL`);
  if (isPreset(name))
    throw new ConfigError(
      `${name} is a model from scratch: it exists only once a run has trained it (pawl train --model.start ${name}); then name the run`,
    );
  return name;
}
