/**
 * Tools, and how the originals call them: arguments are passed by name without a look at the
 * schema, and what Python makes of them is the tool's answer.
 */
import { jsonText } from "./json.js";
import { type Dict, isDict, isList, PyError, str, type Value } from "./value.js";

/** What a tool does to the state; `hidden` ones are for initial states and assertions only. */
export type Effect = "read" | "write" | "generic" | "hidden";

/** A tool of a world's state `S`. */
export interface ToolDefinition<S> {
  readonly effect: Effect;
  /** Names of its parameters in order; `name=JSON` has a default. */
  readonly parameters: readonly string[];
  run(state: S, ...values: Value[]): Answer;
}

/** What a tool returns: a value of Python's, or a plain dict, list or tuple of values. */
export type Answer = Value | PlainContainer;

/** A plain container: numbers and booleans that lie in it directly are written as texts. */
interface PlainContainer {
  readonly loose: Value;
}

/** Tools by name. */
export interface Toolkit<S> {
  /** What Python's messages call the function of a tool. */
  callee(name: string): string;
  readonly tools: ReadonlyMap<string, ToolDefinition<S>>;
}

/** A tool: its effect, its parameters separated by blanks, and what it does. */
export function tool<S>(
  effect: Effect,
  parameters: string,
  run: (state: S, ...values: Value[]) => Answer,
): ToolDefinition<S> {
  return { effect, parameters: parameters === "" ? [] : parameters.split(" "), run };
}

/** Puts the arguments in the order of the parameters, or raises as Python does. */
export function bind(name: string, parameters: readonly string[], given: Dict): readonly Value[] {
  const names = parameters.map((one) => one.split("=")[0]!);
  for (const key of given.keys()) {
    if (!names.includes(key))
      throw new PyError("TypeError", `${name}() got an unexpected keyword argument '${key}'`);
  }
  const missing = parameters.filter((one) => !one.includes("=") && !given.has(one));
  if (missing.length > 0) {
    const quoted = missing.map((one) => `'${one}'`);
    const last = quoted.pop()!;
    const list =
      quoted.length === 0
        ? last
        : quoted.length === 1
          ? `${quoted[0]} and ${last}`
          : `${quoted.join(", ")}, and ${last}`;
    const what = `${missing.length} required positional argument${missing.length === 1 ? "" : "s"}`;
    throw new PyError("TypeError", `${name}() missing ${what}: ${list}`);
  }
  return parameters.map((one, at) => {
    const value = given.get(names[at]!);
    return value === undefined ? defaultOf(one) : value;
  });
}

function defaultOf(parameter: string): Value {
  const text = parameter.slice(parameter.indexOf("=") + 1);
  return text === "null" ? null : BigInt(text);
}

/** The methods of a class as a toolkit. */
export function methodsOf<S>(
  className: string,
  tools: Readonly<Record<string, ToolDefinition<S>>> | ReadonlyMap<string, ToolDefinition<S>>,
): Toolkit<S> {
  const map = tools instanceof Map ? tools : new Map(Object.entries(tools));
  return { callee: (name) => `${className}.${name}`, tools: map };
}

/** Calls a tool by name. */
export function callTool<S>(toolkit: Toolkit<S>, state: S, name: string, given: Dict): Answer {
  const found = toolkit.tools.get(name)!;
  const values = bind(toolkit.callee(name), found.parameters, given);
  return found.run(state, ...values);
}

/** The text of an answer: a text as it is, anything else as JSON. */
export function answerText(answer: Answer): string {
  if (typeof answer === "string") return answer;
  return jsonText(isLoose(answer) ? loosen(answer.loose) : scalarText(answer));
}

function isLoose(answer: Answer): answer is PlainContainer {
  return typeof answer === "object" && answer !== null && "loose" in answer;
}

/** Numbers and booleans that lie directly in a plain container become texts. */
function loosen(value: Value): Value {
  if (isList(value)) return value.map(scalarText);
  if (isDict(value)) return new Map([...value].map(([key, one]) => [key, scalarText(one)]));
  return scalarText(value);
}

const scalarText = (value: Value): Value =>
  typeof value === "bigint" || typeof value === "number" || typeof value === "boolean"
    ? str(value)
    : value;
