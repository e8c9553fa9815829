/**
 * Responses: extracts the action from what a policy wrote.
 *
 * The action is the text in the first `<action>…</action>`. An environment may have tags of its own
 * (search: `<search>` or `<answer>`): then there is exactly one, and the action keeps it, because it
 * says what kind of action it is. A response is well-formed if a closed `<think>` comes first and
 * the action is closed, alone in its tags and not empty. Otherwise the most likely action is still
 * extracted. Everything here runs in time linear in the response.
 */
import type { EnvPrompt, ParsedResponse } from "./prompt-style.js";

interface Tag {
  readonly name: string;
  readonly closing: boolean;
  readonly start: number;
  readonly end: number;
}

/** How answers are written: tagged after a thought, alone on a line, or alone after a thought. */
export type AnswerForm = "tags" | "line" | "thought";

/** Reads and writes answers. */
export interface Answers {
  parse(response: string): ParsedResponse;
  format(action: string, thought?: string): string;
}

/** The answers of an environment: its own way, or the form. A line ends at the first of `ends`. */
export function answersOf(
  prompt: EnvPrompt,
  form: AnswerForm,
  ends: readonly string[] = [],
): Answers {
  const { actionTags, parse, format } = prompt;
  const written = (action: string): string =>
    form === "tags" && actionTags === undefined ? `<action>${action}</action>` : action;
  return {
    parse: (response) => {
      const text = upTo(response, ends);
      if (parse !== undefined) return parse(text);
      if (form === "tags") return parseTagged(text, actionTags);
      return form === "line" ? parseLine(text, actionTags) : parseThought(text, actionTags);
    },
    format: (action, thought = "") => {
      if (format !== undefined) return format(action, thought);
      const thinks = form === "tags" || (form === "thought" && thought !== "");
      return `${thinks ? `<think>${thought}</think>` : ""}${written(action)}`;
    },
  };
}

/** Parses an answer in tags: `<think>…</think>`, then the action. */
function parseTagged(response: string, own: readonly string[] | undefined): ParsedResponse {
  const names = own ?? ["action"];
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
  const alone = own === undefined || tags.length === open + 2;
  return {
    action: own !== undefined && content !== "" ? wrap(opening.name, content) : content,
    wellFormed: closed && content !== "" && thought && alone,
  };
}

/** Parses an answer that is the action itself, on one line. */
function parseLine(text: string, own: readonly string[] | undefined): ParsedResponse {
  if (own !== undefined) {
    const parsed = parseTagged(`<think></think>${text}`, own);
    // Spaces beside the tags, as in `<answer> Lisbon </answer>`, are kept: the history shows the
    // action with the tokens that were written, so that an episode stays one sequence.
    const written = text.trim();
    const bare = written.replace(/^(<\w+>) /, "$1").replace(/ (<\/\w+>)$/, "$1");
    if (!parsed.wellFormed || parsed.action !== bare) return { ...parsed, wellFormed: false };
    return { action: written, wellFormed: true };
  }
  const action = firstLine(text);
  return { action, wellFormed: action !== "" && action === oneLine(text) };
}

/** Parses an action on one line, before which a closed thought may stand. */
function parseThought(text: string, own: readonly string[] | undefined): ParsedResponse {
  const { thought, rest } = splitThought(text);
  if (thought === undefined && /<\s{0,4}think\s{0,4}>/i.test(text))
    return { ...parseLine(lastLine(text), own), wellFormed: false };
  return parseLine(rest, own);
}

/** A response as its closed thought, with the tags, and what comes after it. */
export function splitThought(response: string): {
  readonly thought: string | undefined;
  readonly rest: string;
} {
  const end = response.lastIndexOf("</think>");
  if (end < 0) return { thought: undefined, rest: response };
  const after = end + "</think>".length;
  return { thought: response.slice(0, after), rest: response.slice(after) };
}

function upTo(text: string, ends: readonly string[]): string {
  let end = text.length;
  for (const marker of ends) {
    const at = text.indexOf(marker);
    if (at >= 0 && at < end) end = at;
  }
  return text.slice(0, end);
}

const patterns = new Map<string, RegExp>();

// The counts are bounded so that no input makes the match backtrack more than a few characters.
function tagPattern(names: readonly string[]): RegExp {
  const key = names.join("|");
  const known = patterns.get(key) ?? new RegExp(`<\\s{0,4}(/?)\\s{0,4}(${key})\\s{0,4}>`, "gi");
  patterns.set(key, known);
  return known;
}

function findTags(response: string, names: readonly string[]): readonly Tag[] {
  const tags: Tag[] = [];
  for (const match of response.matchAll(tagPattern(names))) {
    const name = (match[2] as string).toLowerCase();
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
