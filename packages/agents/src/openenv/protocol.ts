/**
 * OpenEnv's protocol, as far as both of our sides speak it: the messages of a session, the codes of
 * errors, and what a server of ours says about its environment besides.
 */

import type { EnvPrompt } from "@pawl/core/text/prompt-style.js";
import { z } from "zod";

const record = z.record(z.string(), z.unknown());

/** What a client may send. Unknown keys are refused, as the official server does. */
export const clientMessage = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("reset"), data: record.default({}) }),
  z.strictObject({ type: z.literal("step"), data: record }),
  z.strictObject({ type: z.literal("state") }),
  z.strictObject({ type: z.literal("mcp"), data: record }),
  z.strictObject({ type: z.literal("close") }),
]);

/** The kinds of messages. */
export const messageTypes = ["reset", "step", "state", "mcp", "close"];

/** The reasons of errors. After the last three the server closes the session. */
const errorCodes = [
  "INVALID_JSON",
  "UNKNOWN_TYPE",
  "VALIDATION_ERROR",
  "EXECUTION_ERROR",
  "CAPACITY_REACHED",
  "FACTORY_ERROR",
  "SESSION_ERROR",
] as const;

/** The reason of an error. */
export type ErrorCode = (typeof errorCodes)[number];

/** An error message, as it is sent. */
export function errorMessage(code: ErrorCode, message: string, more: object = {}): string {
  return JSON.stringify({ type: "error", data: { message, code, ...more } });
}

/** How a reset chooses its task; what it does not know is refused. */
export const resetRequest = z.strictObject({
  seed: z.int().min(0).optional(),
  episode_id: z.string().max(255).optional(),
  split: z.string().optional(),
  index: z.int().min(0).optional(),
  task: z.string().optional(),
});

/** The choice of a task. */
export type ResetRequest = z.output<typeof resetRequest>;

/** The title of the observations of our servers, by which our client knows them. */
export const OBSERVATION_TITLE = "PawlObservation";

/** Where the schema of our observations holds `ServedFacts`. */
export const FACTS_KEY = "x-pawl";

/** What one of our servers says about its environment: all that a rollout needs to know. */
export const servedFacts = z.object({
  env: z.string(),
  stepLimit: z.int().min(1),
  maxReturn: z.number(),
  /** Most sessions at once. */
  sessions: z.int().min(1),
  admissible: z.boolean(),
  context: z.boolean(),
  /** Whether the largest return depends on the task. */
  maxReturns: z.boolean().optional(),
  whiteSpace: z.enum(["keep", "collapse"]).optional(),
  freeText: z.boolean().optional(),
  prompt: z.custom<EnvPrompt>((value) => typeof value === "object" && value !== null).optional(),
});

/** The facts about a served environment. */
export type ServedFacts = z.output<typeof servedFacts>;
