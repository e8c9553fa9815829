/**
 * Text in, text out, for environments whose actions and observations are objects of their own. An
 * answer that is a JSON object is the action; any other is put into the one field that has to be
 * filled. An observation is its one text, or JSON if it has several parts.
 */

import { EnvError } from "@pawl/core/envs/env.js";
import { isRecord } from "@pawl/core/text/tool.js";

type Values = Readonly<Record<string, unknown>>;

/** Fields that are no part of what is seen or done. */
const ASIDE = ["metadata", "reward", "done"];

/** Writes actions of a schema; a string says why an answer is none. */
export function actionRule(schema: Values): (answer: string) => Values | string {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const names = Object.keys(properties).filter((name) => !ASIDE.includes(name));
  const required = (Array.isArray(schema.required) ? schema.required : []).filter(
    (name): name is string => typeof name === "string" && !ASIDE.includes(name),
  );
  const fields = required.length > 0 ? required : names;
  const field = fields.length === 1 ? fields[0]! : undefined;
  const type = field !== undefined && isRecord(properties[field]) && properties[field].type;
  return (answer) => {
    const object = readObject(answer);
    if (object !== undefined) return object;
    if (field === undefined)
      return `Expected an action as a JSON object with ${fields.join(", ") || "its fields"}.`;
    const value = fieldValue(answer.trim(), type);
    return value === undefined
      ? `Expected ${String(type)} for ${field}, or a JSON object.`
      : { [field]: value };
  };
}

function fieldValue(text: string, type: unknown): unknown {
  switch (type) {
    case "integer":
      return /^-?\d{1,15}$/.test(text) ? Number(text) : undefined;
    case "number":
      return text !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined;
    case "boolean":
      return /^(true|false)$/i.test(text) ? /^true$/i.test(text) : undefined;
    case "object":
      return undefined;
    case "array":
      return readJson(text, Array.isArray);
    default:
      return text;
  }
}

/** The object that an answer is, fenced or not. */
function readObject(answer: string): Values | undefined {
  const bare = /^\s*```(?:json)?\s*\n([\s\S]*?)\n?\s*```\s*$/.exec(answer)?.[1] ?? answer;
  return bare.trimStart().startsWith("{")
    ? (readJson(bare, isRecord) as Values | undefined)
    : undefined;
}

function readJson(text: string, is: (value: unknown) => boolean): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return is(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What is seen, as text. */
export function observationText(observation: Values): string {
  const parts = Object.entries(observation).filter(([name]) => !ASIDE.includes(name));
  const texts = parts.filter(([, value]) => typeof value === "string");
  const given = parts.filter(([, value]) => value !== null);
  if (texts.length === 1 && given.length === 1) return texts[0]![1] as string;
  return JSON.stringify(Object.fromEntries(parts));
}

/** What a reset or a step answered, checked. */
export interface CheckedAnswer {
  readonly observation: Values;
  readonly reward: number;
  readonly done: boolean;
}

/** Checks an observation message: no reward is 0, but a wrong one is an error. */
export function checkAnswer(type: string, data: Values): CheckedAnswer {
  if (type !== "observation")
    throw new EnvError(`the server answered with "${type}", expected "observation"`);
  const { observation, reward = null, done = false } = data;
  if (!isRecord(observation))
    throw new EnvError(
      `the observation is ${JSON.stringify(observation)?.slice(0, 100)}, expected an object`,
    );
  if (typeof done !== "boolean")
    throw new EnvError(`done is ${JSON.stringify(done)}, expected true or false`);
  const value = reward === null ? 0 : typeof reward === "boolean" ? Number(reward) : reward;
  if (typeof value !== "number" || !Number.isFinite(value))
    throw new EnvError(`the reward is ${JSON.stringify(reward)}, expected a number or null`);
  return { observation, reward: value, done };
}
