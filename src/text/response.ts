/**
 * Responses: extracts the action from what a policy wrote.
 *
 * The action is the text in the first `<action>…</action>` (search: `<search>` or `<answer>`,
 * exactly one, and the action keeps its tags, which say which of the two it is). A response is
 * well-formed if a closed `<think>` comes first and the action is closed, alone in its tags and not
 * empty. Otherwise the most likely action is still extracted. Everything here runs in time linear
 * in the response.
 */
import type { ParsedResponse, PromptFamily } from "./prompt-style.js";

interface Tag {
  readonly name: string;
  readonly closing: boolean;
  readonly start: number;
  readonly end: number;
}

// The counts are bounded so that no input makes the match backtrack more than a few characters.
const tagPattern = /<\s{0,4}(\/?)\s{0,4}(think|action|search|answer)\s{0,4}>/gi;

/** Parses an answer in tags: `<think>…</think>`, then the action. */
export function parseTagged(response: string, family: PromptFamily): ParsedResponse {
  const names = family === "search" ? ["search", "answer"] : ["action"];
  const tags = findTags(response, ["think", ...names]);
  const open = tags.findIndex((tag) => !tag.closing && names.includes(tag.name));
  if (open < 0) return { action: untaggedAction(response, tags), wellFormed: false };

  const opening = tags[open] as Tag;
  const next = tags[open + 1];
  const closed = next?.closing === true && next.name === opening.name;
  const inside = response.slice(opening.end, next?.start);
  const content = closed ? oneLine(inside) : firstLine(inside);
  const thought = isThought(tags.slice(0, open));
  // A search step is one query or one answer; further `<action>`s are ignored.
  const alone = family !== "search" || tags.length === open + 2;
  return {
    action: family === "search" && content !== "" ? wrap(opening.name, content) : content,
    wellFormed: closed && content !== "" && thought && alone,
  };
}

/** Parses an answer that is the action itself, on one line, up to the first of the `ends`. */
export function parseLine(
  response: string,
  family: PromptFamily,
  ends: readonly string[],
): ParsedResponse {
  let end = response.length;
  for (const marker of ends) {
    const at = response.indexOf(marker);
    if (at >= 0 && at < end) end = at;
  }
  const text = response.slice(0, end);
  if (family === "search") {
    const parsed = parseTagged(`<think></think>${text}`, family);
    return { ...parsed, wellFormed: parsed.wellFormed && parsed.action === text.trim() };
  }
  const action = firstLine(text);
  return { action, wellFormed: action !== "" && action === oneLine(text) };
}

function findTags(response: string, names: readonly string[]): readonly Tag[] {
  const tags: Tag[] = [];
  for (const match of response.matchAll(tagPattern)) {
    const name = (match[2] as string).toLowerCase();
    if (!names.includes(name)) continue;
    const start = match.index;
    tags.push({ name, closing: match[1] === "/", start, end: start + match[0].length });
  }
  return tags;
}

/** Whether the tags are one or more closed thoughts and nothing else. */
function isThought(tags: readonly Tag[]): boolean {
  return (
    tags.length > 0 &&
    tags.length % 2 === 0 &&
    tags.every((tag, at) => tag.name === "think" && tag.closing === (at % 2 === 1))
  );
}

/** The most likely action of a response without an action tag: its last line outside tags. */
function untaggedAction(response: string, tags: readonly Tag[]): string {
  const close = tags.find((tag) => tag.closing && tag.name !== "think");
  const end = close?.start ?? response.length;
  const before = tags.filter((tag) => tag.end <= end).at(-1);
  const line = lastLine(response.slice(before?.end ?? 0, end));
  return line.replace(/^action\s{0,4}:\s{0,4}/i, "");
}

function wrap(name: string, content: string): string {
  return `<${name}>${content}</${name}>`;
}

/** White space that is not single blanks between words. */
const untidy = /^\s|\s$|\s\s|[^\S ]/;

/** Any white space becomes one blank, because an action is one line. */
function oneLine(text: string): string {
  if (!untidy.test(text)) return text;
  return text.split(/\s+/).filter(Boolean).join(" ");
}

function firstLine(text: string): string {
  return oneLine(text.trimStart().split(/[\r\n]/, 1)[0] ?? "");
}

function lastLine(text: string): string {
  const trimmed = text.trimEnd();
  const from = Math.max(trimmed.lastIndexOf("\n"), trimmed.lastIndexOf("\r"));
  return oneLine(trimmed.slice(from + 1));
}
