/** The environment that the command line or the configuration names, and its options. */

import type { EnvKind } from "@pawl/core/envs/env.js";
import { envConfig, findEnvKind } from "@pawl/core/envs/registry.js";
import type { z } from "zod";
import type { Peek } from "./command.js";
import { DEFAULT_WORLD } from "./worlds.js";

/** Where `env` stands among a command's settings. */
const NAME = "env.name";

/** Its name. */
export const envNameOf = (peek: Peek, path = NAME): string => peek(path) ?? DEFAULT_WORLD;

/** Its kind. */
export const envKindOf = (peek: Peek, path = NAME): EnvKind => findEnvKind(envNameOf(peek, path));

/** The options of that kind. */
export function envOptions(peek: Peek): z.ZodPrefault<z.ZodObject> {
  return envConfig(envKindOf(peek)).prefault({});
}
