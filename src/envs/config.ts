/** An environment's configuration. */
import { z } from "zod";
import type { EnvKind } from "./env.js";
import { limitOptions } from "./limits.js";
import { envNames } from "./registry.js";

/** The schema of an environment's configuration: its name, and the options of that kind. */
export function envConfig(kind: EnvKind): z.ZodObject {
  return kind.options.safeExtend({
    name: z
      .enum(envNames())
      .default(kind.name)
      .describe("environment (pawl env list describes them)"),
    limits: limitOptions,
  });
}
