/**
 * Tool calls as model families write them, and how they are read.
 *
 * Hermes and Qwen: JSON between `<tool_call>` tags, `{"name", "arguments"}`. Llama 3: the answer is
 * JSON, `{"name", "parameters"}`. Generic: the answer is JSON, `{"name", "arguments"}`, fenced or
 * not. A thought or other text may stand before a tagged call; before a bare one only a closed
 * thought.
 */
import type { ParsedResponse } from "./prompt-style.js";
import { splitThought } from "./response.js";
import {
  argumentsText,
  type CallForm,
  callText,
  isRecord,
  readCall,
  type Tool,
  type ToolCall,
  writtenMember,
} from "./tool.js";

/** The form that a chat template writes calls in; plain JSON if it does not say. */
export function callFormOf(chatTemplate = ""): CallForm {
  if (chatTemplate.includes("<tool_call>")) return "hermes";
  if (/"parameters"|ipython|python_tag/.test(chatTemplate)) return "llama";
  return "json";
}

/** How to call, for models whose chat template does not say. */
export function howToCall(form: CallForm): string {
  const call =
    form === "llama" ? '{"name": NAME, "parameters": {…}}' : '{"name": NAME, "arguments": {…}}';
  return form === "hermes"
    ? `Call one tool at a time: write <tool_call>${call}</tool_call>.`
    : `Call one tool at a time: answer with ${call} and nothing else.`;
}

/** The call as a model of this family writes it. */
export function formatCall(made: ToolCall, form: CallForm): string {
  const key = form === "llama" ? "parameters" : "arguments";
  const call = `{"name":${JSON.stringify(made.tool)},"${key}":${argumentsText(made)}}`;
  if (form === "llama") return call;
  return form === "hermes" ? `<tool_call>\n${call}\n</tool_call>` : call;
}

/** The action of a response: a call on one line, or what is wrong with it. */
export function parseCall(
  response: string,
  form: CallForm,
  tools: readonly Tool[],
): ParsedResponse {
  const found = form === "hermes" ? taggedJson(response) : bareJson(response);
  if ("problem" in found) return malformed(response, found.problem);
  const { name, arguments: values, parameters } = found.value;
  const given = values ?? parameters ?? {};
  if (typeof name !== "string")
    return malformed(response, 'A call has a "name": the name of the tool as a text.');
  if (!isRecord(given))
    return malformed(response, `The arguments of ${name} should be a JSON object.`);
  if (!tools.some((tool) => tool.name === name))
    return malformed(
      response,
      `There is no tool ${name}. The tools are: ${tools.map((tool) => tool.name).join(", ")}.`,
    );
  const written = writtenMember(found.text, values === undefined ? "parameters" : "arguments");
  const call = { tool: name, arguments: given, ...(written !== undefined && { written }) };
  return { action: callText(call), wellFormed: true };
}

/** Writes an action the way a model of this family would; an action that is no call as it is. */
export function formatAction(action: string, form: CallForm): string {
  const call = readCall(action);
  return call === undefined ? action : formatCall(call, form);
}

/** An answer in parts: what was thought, said and called. */
export interface ParsedAnswer {
  readonly reasoning?: string;
  readonly text: string;
  readonly calls: readonly ToolCall[];
  /** What is wrong with a call that cannot be read; the text is then the answer as it was written. */
  readonly problem?: string;
}

/** Reads an answer that may call any number of tools, or none. */
export function parseAnswer(response: string, form: CallForm): ParsedAnswer {
  const { reasoning, text } = splitReasoning(response);
  const thought = reasoning === undefined ? {} : { reasoning };
  const found = form === "hermes" ? taggedCalls(text) : bareCalls(text);
  if (found === undefined) return { ...thought, text, calls: [] };
  if ("problem" in found) return { ...thought, text, calls: [], problem: found.problem };
  const calls: ToolCall[] = [];
  for (const { name, arguments: values, parameters } of found.values) {
    const given = asRecord(values ?? parameters ?? {});
    if (typeof name !== "string" || given === undefined) {
      const problem = 'A call has a "name", a text, and "arguments", a JSON object.';
      return { ...thought, text, calls: [], problem };
    }
    calls.push({ tool: name, arguments: given });
  }
  return { ...thought, text: found.text, calls };
}

/** An answer without its reasoning, which may lack its first tag or be cut before its last. */
export function splitReasoning(response: string): {
  readonly reasoning?: string;
  readonly text: string;
} {
  const { thought, rest } = splitThought(response);
  const opened = /^\s*<think>/;
  if (thought !== undefined) {
    const reasoning = thought.slice(0, -"</think>".length).replace(opened, "").trim();
    return { ...(reasoning !== "" && { reasoning }), text: rest.trimStart() };
  }
  if (!opened.test(response)) return { text: response };
  return { reasoning: response.replace(opened, "").trim(), text: "" };
}

type Calls =
  | { readonly text: string; readonly values: readonly Record<string, unknown>[] }
  | { readonly problem: string };

/** The calls between tags, and the text around them; undefined if there is none. */
function taggedCalls(answer: string): Calls | undefined {
  const [first, ...parts] = answer.split("<tool_call>");
  if (parts.length === 0) return undefined;
  const said = [first!.trim()];
  const values: Record<string, unknown>[] = [];
  for (const part of parts) {
    const [inside, ...after] = part.split("</tool_call>");
    if (after.length === 0) return { problem: "A call does not end with </tool_call>." };
    const read = readJson(inside!);
    if ("problem" in read) return read;
    values.push(read.value);
    said.push(after.join("</tool_call>").trim());
  }
  return { text: said.filter((one) => one !== "").join("\n"), values };
}

/** The calls of an answer that is JSON, one or a list; undefined if it is no call. */
function bareCalls(answer: string): Calls | undefined {
  const json = unfenced(answer);
  if (!/^[{[]/.test(json)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    if (!/^\[?\s*\{\s*"name"/.test(json)) return undefined;
    return { problem: `The call is not JSON: ${(error as Error).message}.` };
  }
  const list = Array.isArray(value) ? value : [value];
  const isCall = (one: unknown): one is Record<string, unknown> => isRecord(one) && "name" in one;
  // An answer may be JSON without being a call.
  if (list.length === 0 || !list.every(isCall)) return undefined;
  return { text: "", values: list };
}

/** Arguments as an object; some models write them as a text of JSON. */
function asRecord(value: unknown): Record<string, unknown> | undefined {
  if (typeof value !== "string") return isRecord(value) ? value : undefined;
  const read = readJson(value);
  return "value" in read ? read.value : undefined;
}

const longestAction = 500;

function malformed(response: string, problem: string): ParsedResponse {
  const action = response.trim().split(/\s+/).join(" ").slice(0, longestAction);
  return { action, wellFormed: false, problem };
}

type CallJson =
  | { readonly value: Record<string, unknown>; readonly text: string }
  | { readonly problem: string };

function taggedJson(response: string): CallJson {
  const { rest } = splitThought(response);
  const parts = rest.split("<tool_call>");
  if (parts.length === 1)
    return { problem: "No tool was called. Write the call between <tool_call> and </tool_call>." };
  if (parts.length > 2) return { problem: "More than one tool was called. Call one at a time." };
  const [inside, after, ...more] = parts[1]!.split("</tool_call>");
  if (after === undefined) return { problem: "The call does not end with </tool_call>." };
  if (more.length > 0 || after.trim() !== "")
    return { problem: "Nothing may stand after </tool_call>." };
  return readJson(inside!);
}

function bareJson(response: string): CallJson {
  return readJson(unfenced(splitThought(response).rest));
}

/** JSON without a fence around it or Llama's mark before it. */
function unfenced(answer: string): string {
  const text = answer.trim().replace(/^<\|python_tag\|>/, "");
  return /^```(?:json)?\s*\n([\s\S]*?)\n?```$/.exec(text)?.[1] ?? text;
}

function readJson(text: string): CallJson {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { problem: `The call is not JSON: ${(error as Error).message}.` };
  }
  if (!isRecord(value)) return { problem: "The call should be a JSON object." };
  return { value, text };
}
