/** Opens an environment by its name and plain options. */
import { z } from "zod";
import { requireConsent } from "../trust/consent.js";
import { type EnvConfig, EnvError, type Environment } from "./env.js";
import { isolatedEnvironment } from "./isolated-environment.js";
import { type EnvLimits, limitOptions } from "./limits.js";
import { findEnvKind } from "./registry.js";

// The words that an environment gives to policies, checked when it is opened.

const text = z.string().optional();
const callback = z.custom((value) => typeof value === "function", "expected a function").optional();

/** What `EnvPrompt` of packages/core/src/text/prompt-style.ts may hold. */
const envPrompt = z.strictObject({
  instructions: text,
  advice: text,
  answer: text,
  history: z.union([z.int().min(0), z.literal("all")]).optional(),
  template: text,
  actionTags: z.array(z.string()).readonly().optional(),
  around: z.tuple([z.string(), z.string()]).readonly().optional(),
  render: callback,
  parse: callback,
  format: callback,
});

/** Refuses a prompt that no style could render. */
export function checkPrompt(prompt: unknown, name: string): void {
  if (prompt === undefined) return;
  const parsed = envPrompt.safeParse(prompt);
  if (parsed.success) return;
  throw new EnvError(
    `environment ${name}: its prompt is not one: ${z.prettifyError(parsed.error)}\nIt is an object such as { instructions: "You act with: …" } (docs/tutorials/own-environment.md); leave it out for neutral words.`,
  );
}

export type { EnvConfig } from "./env.js";

/**
 * Opens an environment; an unknown name or option is an `EnvError` that lists what exists.
 * With `play: false` it is only read: its tasks and its words, not its worlds.
 */
export function openEnvironment(
  config: EnvConfig,
  { play = true }: { readonly play?: boolean } = {},
): Environment {
  const { name, limits, ...options } = config;
  const kind = findEnvKind(name);
  const parsed = kind.options.safeParse(options);
  if (!parsed.success) {
    throw new EnvError(`environment ${name}: ${z.prettifyError(parsed.error)}`);
  }
  requireConsent(kind.options, parsed.data, "env");
  if (play) kind.ready?.(parsed.data);
  const opened = kind.open(parsed.data);
  checkPrompt(opened.prompt, name);
  const parsedLimits = parseLimits(limits, name);
  if (parsedLimits.isolate) return isolatedEnvironment(opened, config, parsedLimits);
  // Set on the object itself, which may be an instance of a user's class.
  return Object.assign(opened, { limits: parsedLimits });
}

function parseLimits(limits: unknown, name: string): EnvLimits {
  const parsed = limitOptions.safeParse(limits);
  if (parsed.data?.isolatedMemory !== undefined && !parsed.data.isolate)
    throw new EnvError(
      "env.limits.isolatedMemory holds for isolated worlds: add env.limits.isolate, or leave it out",
    );
  if (parsed.success) return parsed.data;
  throw new EnvError(`environment ${name}: limits: ${z.prettifyError(parsed.error)}`);
}
