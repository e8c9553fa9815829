/**
 * Actions as the environment gets them: with the white space that was written, where it matters
 * (parsing makes any white space one blank), and in lower case if the prompt's settings say so.
 */
import type { ParsedResponse, PromptStyle } from "./prompt-style.js";
import type { Tool } from "./tool.js";

/** Parses a response. A call of a tool is left as it is parsed. */
export function readAction(
  style: Pick<PromptStyle, "parse" | "lowerCase">,
  response: string,
  {
    tools,
    whiteSpace = "keep",
  }: {
    readonly tools?: readonly Tool[] | undefined;
    readonly whiteSpace?: "keep" | "collapse" | undefined;
  },
): ParsedResponse {
  const parsed = style.parse(response, tools);
  if (tools !== undefined) return parsed;
  const action =
    whiteSpace === "collapse" ? parsed.action : verbatimAction(response, parsed.action);
  return { ...parsed, action: style.lowerCase === true ? action.toLowerCase() : action };
}

/** The action with the white space of the response; as parsed, if it is not found there. */
export function verbatimAction(response: string, action: string): string {
  const words = action.split(" ");
  if (words.length < 2) return action;
  // An action stands after the thoughts, which may mention it.
  const thought = response.lastIndexOf("</think>");
  for (let at = thought + 1; ; at++) {
    at = response.indexOf(words[0]!, at);
    if (at < 0) return action;
    const end = endOf(response, at, words);
    if (end !== undefined) return response.slice(at, end);
  }
}

/** Where the words end that start here, with any white space between them; undefined if they do not. */
function endOf(text: string, start: number, words: readonly string[]): number | undefined {
  let at = start + words[0]!.length;
  for (const word of words.slice(1)) {
    const gap = at;
    while (at < text.length && text[at]!.trim() === "") at++;
    if (at === gap || !text.startsWith(word, at)) return undefined;
    at += word.length;
  }
  return at;
}
