/**
 * Frames: what a model's chat template writes around the messages of a conversation.
 *
 * They are found by rendering conversations of probes, short texts that a template cannot contain,
 * and looking at what stands between them. So the text of the world is never parsed for special
 * tokens, and a growing conversation needs no rendering. A turn is only appended if the rendering
 * with it begins with the rendering without it; a template that drops earlier reasoning, or writes
 * something else at the end than in the middle, is not append-only there.
 */
import type { PromptPiece, Role } from "./prompt-style.js";
import { type ChatMessage, type Tokenizer, TokenizerError } from "./tokenizer.js";
import type { Tool } from "./tool.js";

/** How a template writes the contents of a message. */
export type ContentForm = keyof typeof contentForms;

const quoted = (text: string): string => JSON.stringify(text).slice(1, -1);
const contentForms = {
  same: (text: string) => text,
  quoted,
  "trimmed and quoted": (text: string) => quoted(text.trim()),
  trimmed: (text: string) => text.trim(),
} as const;

/** What is written before, between and after the contents of the first messages. */
export interface OpeningFrame {
  /** One more than there are messages. */
  readonly texts: readonly string[];
  readonly forms: readonly ContentForm[];
}

/** What a turn depends on. */
export interface TurnShape {
  /** Roles of the messages before the first response. */
  readonly opening: readonly Role[];
  readonly tools: readonly Tool[] | undefined;
  /** Whether the response has a thought, and how many tools it calls. */
  readonly thought: boolean;
  readonly calls: number;
  /** Who answers it, one message after another. */
  readonly replies: readonly Role[];
}

/**
 * What is written around the answers to a response: from the token that ends the response up to
 * where the next one begins.
 */
export interface TurnFrame extends OpeningFrame {
  /** The text of the token that ends the response. */
  readonly end: string;
  /** Why the turn cannot be appended to what was there before; undefined if it can. */
  readonly problem?: string;
}

const caches = new WeakMap<Tokenizer, Map<string, unknown>>();

/** Tools are part of what is remembered, and a server is shown ever new ones. */
const mostRemembered = 1000;

/** Computed once per tokenizer and key. */
function remembered<T>(tokenizer: Tokenizer, key: unknown, compute: () => T): T {
  const cache = caches.get(tokenizer) ?? new Map<string, unknown>();
  caches.set(tokenizer, cache);
  const name = JSON.stringify(key);
  if (cache.has(name)) return cache.get(name) as T;
  const value = compute();
  if (cache.size >= mostRemembered) cache.clear();
  cache.set(name, value);
  return value;
}

/** The frame of a conversation's first messages, up to the first response. */
export function openingFrame(
  tokenizer: Tokenizer,
  roles: readonly Role[],
  tools?: readonly Tool[],
): OpeningFrame {
  return remembered(tokenizer, ["opening", roles, tools], () => {
    const messages = roles.map((role, at): ChatMessage => ({ role, content: spaced(at) }));
    const text = tokenizer.chat(messages, { addGenerationPrompt: true, tools });
    const found = split(
      text,
      roles.map((_, at) => at),
    );
    if (found !== undefined) return found;
    throw new TokenizerError(
      `The tokenizer's chat template does not contain ${roles.length === 1 ? "a user's message" : `the messages of ${roles.join(" and ")}`} exactly once and unchanged, so a prompt cannot be put into it. It wrote: ${text.slice(0, 200)}`,
    );
  });
}

/** Whether the template writes the tools that it is given. */
export function knowsTools(tokenizer: Tokenizer, tools: readonly Tool[]): boolean {
  return remembered(tokenizer, ["tools", tools], () => {
    const messages: readonly ChatMessage[] = [{ role: "user", content: probe(0) }];
    return tokenizer.chat(messages, { tools }) !== tokenizer.chat(messages);
  });
}

/** Whether the template takes messages of these roles, one after another. */
export function takesRoles(tokenizer: Tokenizer, roles: readonly Role[]): boolean {
  return remembered(tokenizer, ["roles", roles], () => {
    try {
      openingFrame(tokenizer, roles);
      return true;
    } catch (error) {
      if (error instanceof TokenizerError) return false;
      throw error;
    }
  });
}

/** Whether the template writes the tool calls of the assistant's messages. */
export function writesCalls(tokenizer: Tokenizer): boolean {
  return remembered(tokenizer, "calls", () => {
    const [said, answer] = turnMessages(
      { opening: ["user"], tools: undefined, thought: false, calls: 1, replies: ["tool"] },
      1,
    );
    try {
      return tokenizer
        .chat([{ role: "user", content: probe(0) }, said!, answer!])
        .includes(probe(1));
    } catch (error) {
      if (error instanceof TokenizerError) return false;
      throw error;
    }
  });
}

/** The frame of a turn: a response, and the messages that answer it. */
export function turnFrame(tokenizer: Tokenizer, shape: TurnShape): TurnFrame {
  return remembered(tokenizer, ["turn", shape], () => {
    const first = frameAfter(tokenizer, shape, 0);
    const second = frameAfter(tokenizer, shape, 1);
    const problem =
      first.problem ??
      second.problem ??
      (first.texts.every((text, at) => text === second.texts[at])
        ? undefined
        : "it writes a first answer differently from later ones");
    return { ...second, problem };
  });
}

/** The frame of a turn after this many turns like it. */
function frameAfter(tokenizer: Tokenizer, shape: TurnShape, turns: number): TurnFrame {
  const messages = shape.opening.map((role, at): ChatMessage => ({ role, content: spaced(at) }));
  const turn = (): number => {
    const at = messages.length;
    messages.push(...turnMessages(shape, at));
    return at;
  };
  for (let i = 0; i < turns; i++) turn();
  const options = { addGenerationPrompt: true, tools: shape.tools };
  const before = tokenizer.chat(messages, options);
  const at = turn();
  const whole = tokenizer.chat(messages, options);
  const appended = whole.startsWith(before);
  const rest = appended ? whole.slice(before.length) : whole;
  return { ...afterResponse(tokenizer, rest, at, shape, appended) };
}

function afterResponse(
  tokenizer: Tokenizer,
  text: string,
  at: number,
  { thought, calls, replies }: TurnShape,
  appended: boolean,
): TurnFrame {
  const said = text.lastIndexOf(probe(at));
  const from = said + probe(at).length;
  const ends = tokenizer.endIds
    .map((id) => tokenizer.decode([id]))
    .map((end) => ({ end, at: text.indexOf(end, from) }))
    .filter((found) => found.at >= 0)
    .sort((a, b) => a.at - b.at);
  const [ended] = ends;
  if (said < 0 || ended === undefined)
    throw new TokenizerError(
      `The tokenizer's chat template does not end the assistant's messages with the tokenizer's end token (${tokenizer.endIds.map((id) => tokenizer.decode([id])).join(", ") || "it names none"}), so a conversation cannot be continued after a response. It wrote: ${text.slice(0, 200)}`,
    );
  const response = text.slice(0, ended.at).replace(/\s/g, "");
  const expected = `${thought ? thinking(at) : ""}${probe(at)}`;
  const problem = !appended
    ? "it changes what it wrote before"
    : thought && !response.includes(calls > 0 ? thinking(at) : expected)
      ? "it drops earlier reasoning"
      : calls === 0 && response !== expected
        ? "it adds to what a response says"
        : undefined;
  const found = split(
    text.slice(ended.at + ended.end.length),
    replies.map((_, i) => at + 1 + i),
  );
  if (found === undefined)
    throw new TokenizerError(
      `The tokenizer's chat template does not contain the answer to a response exactly once and unchanged, so a conversation cannot be continued. It wrote: ${text.slice(0, 200)}`,
    );
  return { end: ended.end, ...found, problem };
}

/** A response, and the messages that answer it, in probes. */
function turnMessages(shape: TurnShape, at: number): readonly ChatMessage[] {
  const { calls, tools, thought } = shape;
  const said = thought ? thinking(at) : "";
  const name = tools?.[0]?.name ?? "tool";
  const id = (call: number): string => `call0000${Math.min(call, calls - 1) + 1}`;
  const called = Array.from({ length: calls }, (_, call) => ({
    id: id(call),
    type: "function" as const,
    function: { name, arguments: { x: probe(at) } },
  }));
  let answered = 0;
  return [
    calls > 0
      ? { role: "assistant", content: said, tool_calls: called }
      : { role: "assistant", content: `${said}${probe(at)}` },
    ...shape.replies.map((role, i): ChatMessage => {
      const answers = role === "tool" && calls > 0 ? { tool_call_id: id(answered++) } : {};
      return { role, content: spaced(at + 1 + i), ...answers };
    }),
  ];
}

/** A whole conversation as the template writes it, probes in place of contents. */
export function wholeFrame(
  tokenizer: Tokenizer,
  messages: readonly { readonly role: Role; readonly thought?: boolean }[],
  tools?: readonly Tool[],
): string {
  return tokenizer.chat(
    messages.map(({ role, thought = false }, at) => ({
      role,
      content: `${thought ? thinking(at) : ""}${probe(at)}`,
    })),
    { addGenerationPrompt: true, tools },
  );
}

/** A text that a template cannot contain. */
export function probe(at: number): string {
  return `Zq${at}Probe`;
}

/** The probe of a thought. */
function thoughtProbe(at: number): string {
  return `Zq${at}Thought`;
}

const thinking = (at: number): string => `<think>${thoughtProbe(at)}</think>`;

/** A probe that shows whether contents are trimmed or quoted. */
const spaced = (at: number): string => `\n "${probe(at)}" \n`;

/** What stands around the spaced probes, which must all be there once and in order. */
function split(text: string, probes: readonly number[]): OpeningFrame | undefined {
  const texts: string[] = [];
  const forms: ContentForm[] = [];
  let rest = text;
  for (const at of probes) {
    const names = Object.keys(contentForms) as ContentForm[];
    const form = names.find((name) => rest.includes(contentForms[name](spaced(at))));
    if (form === undefined) return undefined;
    const around = rest.split(contentForms[form](spaced(at)));
    if (around.length !== 2) return undefined;
    texts.push(around[0]!);
    forms.push(form);
    rest = around[1]!;
  }
  texts.push(rest);
  return texts.some((one) => /Zq\d+Probe/.test(one)) ? undefined : { texts, forms };
}

/** The contents of a message as the template writes them. */
export function inForm(pieces: readonly PromptPiece[], form: ContentForm): readonly PromptPiece[] {
  if (form === "same") return pieces;
  const last = pieces.length - 1;
  const trims = form.startsWith("trimmed");
  const quotes = form.endsWith("quoted");
  return pieces.map((piece, at) => {
    let { text } = piece;
    if (trims && at === 0) text = text.trimStart();
    if (trims && at === last) text = text.trimEnd();
    return { ...piece, text: quotes ? quoted(text) : text };
  });
}
