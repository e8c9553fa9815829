/** Defines a kind of environment: of text, or of tool calls. */
import type { z } from "zod";
import { EnvError, type EnvKind } from "./env.js";
import { type ToolEnvironment, textEnvironment } from "./tool-env.js";

/** A kind of environment that is acted in by tool calls. */
export interface ToolEnvKind<Options extends z.ZodObject = z.ZodObject>
  extends Omit<EnvKind<Options>, "open"> {
  open(options: z.output<Options>): ToolEnvironment;
}

/** An environment kind with the type of its options inferred from the schema. */
export function defineEnv<Options extends z.ZodObject>(kind: EnvKind<Options>): EnvKind<Options> {
  return asText(kind);
}

/**
 * The same for worlds that offer `tools()`: their `step` is given `{tool, arguments}`, checked
 * against the tool's schema.
 */
export function defineToolEnv<Options extends z.ZodObject>(
  kind: ToolEnvKind<Options>,
): EnvKind<Options> {
  return asText(kind);
}

function asText<Options extends z.ZodObject>(
  kind: EnvKind<Options> | ToolEnvKind<Options>,
): EnvKind<Options> {
  return {
    ...kind,
    open: (options) => textEnvironment(kind.open(options)),
    describe: kind.describe && ((options) => described(() => kind.describe!(options))),
  };
}

/** What there is, or what is missing. */
function described(look: () => readonly string[]): readonly string[] {
  try {
    return look();
  } catch (error) {
    if (error instanceof EnvError) return [error.message];
    throw error;
  }
}
