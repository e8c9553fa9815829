/** `{a,b}` and `{1..9}`: words made of one word. */
import { ShellError } from "./shell.js";
import type { Word, WordPart } from "./syntax.js";

/** A character outside quotes, or a part that braces leave alone. */
type Token = string | WordPart;

const MOST_WORDS = 20_000;
const RANGE = /^(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?$/;

/** The words that a word with braces stands for; others stand for themselves. */
export function expandBraces(word: Word): readonly Word[] {
  if (!word.some((part) => part.type === "text" && !part.quoted && part.text.includes("{")))
    return [word];
  const tokens = word.flatMap((part): readonly Token[] =>
    part.type === "text" && !part.quoted ? [...part.text] : [part],
  );
  return expand(tokens).map(joined);
}

function joined(tokens: readonly Token[]): Word {
  const parts: WordPart[] = [];
  let text = "";
  const flush = (): void => {
    if (text !== "") parts.push({ type: "text", text, quoted: false });
    text = "";
  };
  for (const token of tokens) {
    if (typeof token === "string") text += token;
    else {
      flush();
      parts.push(token);
    }
  }
  flush();
  return parts;
}

function expand(tokens: readonly Token[]): readonly (readonly Token[])[] {
  for (let start = 0; start < tokens.length; start++) {
    if (tokens[start] !== "{") continue;
    const choices = choicesAt(tokens, start);
    if (choices === undefined) continue;
    const before = tokens.slice(0, start);
    const after = expand(tokens.slice(choices.end));
    const inside = choices.parts.flatMap(expand);
    if (inside.length * after.length > MOST_WORDS)
      throw new ShellError("braces stand for too many words");
    return inside.flatMap((one) => after.map((rest) => [...before, ...one, ...rest]));
  }
  return [tokens];
}

/** What stands between the commas of a brace, and where it ends. */
function choicesAt(tokens: readonly Token[], start: number) {
  const parts: (readonly Token[])[] = [];
  let depth = 0;
  let from = start + 1;
  for (let at = start + 1; at < tokens.length; at++) {
    const token = tokens[at];
    if (token === "{") depth += 1;
    else if (token === "," && depth === 0) {
      parts.push(tokens.slice(from, at));
      from = at + 1;
    } else if (token === "}") {
      if (depth > 0) {
        depth -= 1;
        continue;
      }
      const last = tokens.slice(from, at);
      if (parts.length > 0) return { parts: [...parts, last], end: at + 1 };
      const range = rangeOf(last.every((one) => typeof one === "string") ? last.join("") : "");
      return range && { parts: range, end: at + 1 };
    }
  }
  return undefined;
}

function rangeOf(text: string): readonly (readonly string[])[] | undefined {
  const found = RANGE.exec(text);
  if (found === null) return undefined;
  const [, from, to, by] = found as unknown as [string, string, string, string | undefined];
  const isLetters = /[A-Za-z]/.test(from);
  if (isLetters !== /[A-Za-z]/.test(to)) return undefined;
  const [first, last] = isLetters
    ? [from.charCodeAt(0), to.charCodeAt(0)]
    : [Number(from), Number(to)];
  const step = Math.abs(Number(by ?? 1)) || 1;
  if (Math.abs(last - first) / step > MOST_WORDS)
    throw new ShellError("braces stand for too many words");
  const isPadded = [from, to].some((one) => /^-?0\d/.test(one));
  const width = isPadded ? Math.max(from.length, to.length) : 0;
  const count = Math.floor(Math.abs(last - first) / step) + 1;
  return Array.from({ length: count }, (_, n) => {
    const value = first + (last < first ? -n : n) * step;
    if (isLetters) return [String.fromCharCode(value)];
    const digits = String(Math.abs(value)).padStart(value < 0 ? width - 1 : width, "0");
    return [value < 0 ? `-${digits}` : digits];
  });
}
