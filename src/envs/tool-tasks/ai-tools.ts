/**
 * Tools in the shape of the AI SDK's `tool()`: `{description, inputSchema, execute, …}`. They are
 * plain objects, so they are read here without that package.
 */
import { z } from "zod";
import { isRecord, type Tool, type ToolCall } from "../../text/tool.js";
import { EnvError } from "../env.js";
import { after, isLater, type Later } from "./later.js";
import type { CallResult } from "./tool-tasks.js";

/** A tool as the AI SDK's `tool()` makes it. */
export interface AiTool {
  readonly description?: unknown;
  /** A zod 4 schema, any other with a JSON Schema by the Standard, or the AI SDK's `jsonSchema()`. */
  readonly inputSchema: unknown;
  // biome-ignore lint/suspicious/noExplicitAny: each tool has its own input.
  readonly execute?: ((input: any, options: any) => unknown) | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: each tool has its own output.
  readonly toModelOutput?: ((result: any) => unknown) | undefined;
  readonly type?: unknown;
  readonly needsApproval?: unknown;
}

/** Tools by name. */
export type AiTools = Readonly<Record<string, AiTool>>;

/** The tools as they are offered; one that cannot be called here is refused by name. */
export function describeTools(tools: AiTools): readonly Tool[] {
  return Object.entries(tools).map(([name, tool]) => {
    const refuse = (message: string): never => {
      throw new EnvError(`tool ${name}: ${message}`);
    };
    if (!isRecord(tool)) refuse("expected { description, inputSchema, execute }");
    const { description = "", execute, type, needsApproval } = tool;
    if (type !== undefined && type !== "function" && type !== "dynamic")
      refuse(`it is of type ${JSON.stringify(type)}, which runs elsewhere; expected a function`);
    if (typeof execute !== "function") refuse("it has no execute, so nothing would happen");
    if (needsApproval !== undefined && needsApproval !== false)
      refuse("needsApproval: nobody approves calls during training; leave it out");
    if (typeof description !== "string")
      refuse(`description: expected text, got a ${typeof description}`);
    return { name, description: description as string, parameters: schemaOf(tool, refuse) };
  });
}

type Refuse = (message: string) => never;

/** The JSON Schema of a tool's input. */
function schemaOf({ inputSchema }: AiTool, refuse: Refuse): Tool["parameters"] {
  const given = inputSchema as Readonly<Record<string, unknown>> | undefined;
  const standard = given?.["~standard"] as
    | { readonly jsonSchema?: { input?(options: { target: string }): unknown } }
    | undefined;
  try {
    if (isRecord(given) && "_zod" in given)
      return z.toJSONSchema(inputSchema as z.ZodType, { io: "input" });
    if (isRecord(given?.jsonSchema) && !isLater(given.jsonSchema)) return given.jsonSchema;
    const schema = standard?.jsonSchema?.input?.({ target: "draft-2020-12" });
    if (isRecord(schema)) return schema;
  } catch (error) {
    return refuse(`inputSchema: ${(error as Error).message}`);
  }
  return refuse(
    "inputSchema: expected a zod 4 schema, jsonSchema() of the AI SDK, or a schema with the Standard JSON Schema",
  );
}

/** Calls a tool. One that throws has failed; its message is what the agent sees. */
export function callTool(tools: AiTools, call: ToolCall, signal?: AbortSignal): Later<CallResult> {
  const tool = tools[call.tool]!;
  const failed = (error: unknown): CallResult => ({
    text: `Error: ${error instanceof Error ? error.message : String(error)}`,
    failed: true,
  });
  const options = { toolCallId: call.tool, messages: [], abortSignal: signal };
  try {
    const output = after(inputOf(tool, call), (input) =>
      after(lastOf(tool.execute!(input, options)), (result) => shown(tool, input, result)),
    );
    return isLater(output) ? output.catch(failed) : output;
  } catch (error) {
    return failed(error);
  }
}

/** The arguments as the tool's own schema reads them, with its defaults and transformations. */
function inputOf({ inputSchema }: AiTool, { arguments: given }: ToolCall): Later<unknown> {
  const standard = (inputSchema as Record<string, unknown>)["~standard"] as
    | { validate?(value: unknown): Later<{ value?: unknown; issues?: { message: string }[] }> }
    | undefined;
  if (standard?.validate === undefined) return given;
  return after(standard.validate(given), ({ value, issues }) => {
    if (issues !== undefined) throw new Error(issues.map(({ message }) => message).join("; "));
    return value;
  });
}

/** Of partial results, the last counts. */
function lastOf(output: unknown): Later<unknown> {
  if (typeof (output as Partial<AsyncIterable<unknown>>)?.[Symbol.asyncIterator] !== "function")
    return output;
  return (async () => {
    let last: unknown;
    for await (const part of output as AsyncIterable<unknown>) last = part;
    return last;
  })();
}

/** What the agent sees of a result. */
function shown({ toModelOutput }: AiTool, input: unknown, output: unknown): Later<CallResult> {
  if (toModelOutput === undefined) return { text: textOf(output) };
  return after(toModelOutput({ toolCallId: "", input, output }), (made) => {
    const { type, value } = (isRecord(made) ? made : {}) as { type?: string; value?: unknown };
    if (!/^(error-)?(text|json)$/.test(String(type)))
      throw new EnvError(
        `toModelOutput gave ${JSON.stringify(type)}; expected text or json: agents here read text`,
      );
    return { text: textOf(value), ...(type!.startsWith("error-") && { failed: true }) };
  });
}

const textOf = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? "");
