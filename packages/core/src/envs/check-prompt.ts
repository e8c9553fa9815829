/** The words that an environment gives to policies, checked when it is opened. */
import { z } from "zod";
import { EnvError } from "./env.js";

const text = z.string().optional();
const callback = z.custom((value) => typeof value === "function", "expected a function").optional();

/** What `EnvPrompt` of packages/core/src/text/env-prompt.ts may hold. */
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
