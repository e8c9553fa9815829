/** What a world answered, checked at the border: a bad answer is named and breaks its episode only. */
import { EnvError, type StepResult } from "./env.js";
import type { EnvLimits } from "./limits.js";

/** A step's result, with an observation that is too long cut if the limits say so. */
export function checkStep(result: StepResult, limits: EnvLimits): StepResult {
  if (typeof result !== "object" || result === null)
    throw new EnvError(
      `step gave ${show(result)}, expected { observation, reward, done, info: { valid, success } }`,
    );
  const { reward, done, info } = result;
  const observation = checkText(result.observation, "the observation", limits);
  if (typeof reward !== "number" || !Number.isFinite(reward))
    throw new EnvError(`the reward is ${show(reward)}, expected a finite number`);
  if (typeof done !== "boolean")
    throw new EnvError(`done is ${show(done)}, expected true or false`);
  if (typeof info !== "object" || info === null)
    throw new EnvError(`info is ${show(info)}, expected { valid, success }`);
  if (typeof info.valid !== "boolean" || typeof info.success !== "boolean")
    throw new EnvError(
      `info says valid: ${show(info.valid)}, success: ${show(info.success)}; expected true or false for each`,
    );
  if (info.score !== undefined && !Number.isFinite(info.score))
    throw new EnvError(`info.score is ${show(info.score)}, expected a number from 0 to 1 or none`);
  return observation === result.observation ? result : { ...result, observation };
}

/** A text of the world's, cut if it is too long and the limits say so. */
export function checkText(text: unknown, what: string, limits: EnvLimits): string {
  if (typeof text !== "string")
    throw new EnvError(
      `${what} is ${show(text)}, expected text: describe images and other data in words`,
    );
  if (text.length <= limits.observation) return text;
  const found = `${text.length.toLocaleString("en")} characters`;
  const most = limits.observation.toLocaleString("en");
  if (limits.tooLong === "break")
    throw new EnvError(`${what} has ${found}, more than env.limits.observation, ${most}`);
  // Not in the middle of a character that takes two units.
  const end = /[\uD800-\uDBFF]/.test(text[limits.observation - 1]!)
    ? limits.observation - 1
    : limits.observation;
  return `${text.slice(0, end)}\n[cut here: it had ${found}]`;
}

/** A list of actions, if the world lists them. */
export function checkAdmissible(actions: unknown): readonly string[] | undefined {
  if (actions === undefined) return undefined;
  if (!Array.isArray(actions))
    throw new EnvError(`admissibleActions gave ${show(actions)}, expected a list of texts`);
  for (const action of actions)
    if (typeof action !== "string")
      throw new EnvError(`admissibleActions lists ${show(action)}, expected texts only`);
  return actions;
}

const LONGEST_SHOWN = 60;

function show(value: unknown): string {
  if (value === undefined || value === null || typeof value === "number") return String(value);
  if (value instanceof Uint8Array) return "bytes";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object")
    return `an object with ${Object.keys(value).join(", ") || "nothing"}`;
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return `${text.slice(0, LONGEST_SHOWN)} (a ${typeof value})`;
}
