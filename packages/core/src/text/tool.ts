/** Tools: what an environment offers to be called, and a call of one. */

/**
 * JSON values as they were written: `2.0` and `2` are the same number to JavaScript, and different
 * ones to a Python tool that gets them.
 */

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;

/**
 * The text of an object's member without white space, if it has a number that parsing and writing
 * would change; undefined otherwise.
 */
export function writtenMember(json: string, name: string): string | undefined {
  let depth = 0;
  let key: string | undefined;
  let inside = false;
  let text = "";
  let changes = false;
  for (const [token] of json.matchAll(TOKEN)) {
    if (inside && depth === 1 && (token === "," || token === "}")) break;
    if (token === "{" || token === "[") depth++;
    if (token === "}" || token === "]") depth--;
    if (inside) {
      text += token;
      changes ||= /^-?\d/.test(token) && String(Number(token)) !== token;
    } else if (depth === 1 && token.startsWith('"') && key === undefined) key = token;
    else if (depth === 1 && token === ":") inside = key === JSON.stringify(name);
    else if (depth === 1 && token === ",") key = undefined;
  }
  return inside && changes ? text : undefined;
}

/** A tool that an agent may call. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its arguments: an object. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** A call of a tool: what the `step` of an environment with tools is given. */
export interface ToolCall {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The arguments as they were written, if that says more: `2.0` is not `2` to every tool. */
  readonly written?: string;
}

/** The forms of calls (`tool-calls.ts`). */
export const callForms = ["hermes", "llama", "json"] as const;

/** A family's form of calls. */
export type CallForm = (typeof callForms)[number];

/** A call as an action is recorded: one line of JSON. */
export function callText(call: ToolCall): string {
  return `{"tool":${JSON.stringify(call.tool)},"arguments":${argumentsText(call)}}`;
}

/** The arguments of a call as JSON. */
export function argumentsText({ arguments: values, written }: ToolCall): string {
  return written ?? JSON.stringify(values);
}

/** The call that an action stands for; undefined if it is none. */
export function readCall(action: string): ToolCall | undefined {
  if (!action.startsWith("{")) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(action);
  } catch {
    return undefined;
  }
  const { tool, arguments: values } = value as Partial<ToolCall>;
  if (typeof tool !== "string" || !isRecord(values)) return undefined;
  const written = writtenMember(action, "arguments");
  return { tool, arguments: values, ...(written !== undefined && { written }) };
}

/** Whether a value is an object with names, not a list and not null. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const TOOLS_HEADER =
  "The tools you can call, one JSON object a line, with the schema of their arguments:";

/** The tools as text, for models whose chat template does not know tools. */
export function toolsText(tools: readonly Tool[]): string {
  const lines = tools.map(({ name, description, parameters }) =>
    JSON.stringify({ name, description, parameters }),
  );
  return [TOOLS_HEADER, ...lines].join("\n");
}

/** The tools that a prompt's piece of origin `tools` lists; undefined if it is in neither form of ours. */
export function readTools(text: string): readonly Tool[] | undefined {
  try {
    if (!text.startsWith(TOOLS_HEADER)) return (JSON.parse(text) as { tools?: Tool[] }).tools;
    const [, ...lines] = text.split("\n");
    return lines.map((line) => JSON.parse(line) as Tool);
  } catch {
    return undefined;
  }
}
