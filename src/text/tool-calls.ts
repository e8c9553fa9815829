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
import { argumentsText, callText, isRecord, readCall, type Tool, type ToolCall } from "./tool.js";
import { writtenMember } from "./written-json.js";

/** The forms of calls. */
export const callForms = ["hermes", "llama", "json"] as const;

/** A family's form of calls. */
export type CallForm = (typeof callForms)[number];

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

const longestAction = 500;

function malformed(response: string, problem: string): ParsedResponse {
  const action = response.trim().split(/\s+/).join(" ").slice(0, longestAction);
  return { action, wellFormed: false, problem };
}

type Found =
  | { readonly value: Record<string, unknown>; readonly text: string }
  | { readonly problem: string };

function taggedJson(response: string): Found {
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

function bareJson(response: string): Found {
  const { rest } = splitThought(response);
  const text = rest.trim().replace(/^<\|python_tag\|>/, "");
  const fenced = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/.exec(text)?.[1];
  return readJson(fenced ?? text);
}

function readJson(text: string): Found {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { problem: `The call is not JSON: ${(error as Error).message}.` };
  }
  if (!isRecord(value)) return { problem: "The call should be a JSON object." };
  return { value, text };
}
