/** The `--env` options that commands share. */
import type { z } from "zod";
import { envConfig } from "../envs/open.js";
import { findEnvKind } from "../envs/registry.js";
import type { Peek } from "./command.js";

const DEFAULT_ENV = "household";

/** The options of the environment that the command line or the configuration names. */
export function envOptions(peek: Peek, path = "env.name"): z.ZodPrefault<z.ZodObject> {
  return envConfig(findEnvKind(peek(path) ?? DEFAULT_ENV)).prefault({});
}
