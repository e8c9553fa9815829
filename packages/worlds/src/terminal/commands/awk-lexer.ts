/** Cuts the programs of `awk` into tokens. */
import { Failure } from "./call.js";

export interface Token {
  readonly type:
    | "number"
    | "string"
    | "regex"
    | "name"
    | "call"
    | "word"
    | "operator"
    | "newline"
    | "end";
  readonly text: string;
}

const WORDS = new Set(
  "BEGIN END function func if else while for do break continue next nextfile exit return delete in getline print printf".split(
    " ",
  ),
);
const OPERATORS =
  /\*\*=|\+\+|--|\+=|-=|\*=|\/=|%=|\^=|\*\*|==|<=|>=|!=|&&|\|\||>>|!~|[-+*/%^!<>|?:~$=(){}[\],;]/y;

/** The tokens of a program. */
export function awkTokens(text: string): readonly Token[] {
  const tokens: Token[] = [];
  let at = 0;
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  };
  while (at < text.length) {
    if (take(/[ \t\r]+|\\\n|#[^\n]*/y) !== undefined) continue;
    if (take(/\n/y) !== undefined) {
      tokens.push({ type: "newline", text: "\n" });
      continue;
    }
    const number = take(/0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/y);
    if (number !== undefined) {
      tokens.push({ type: "number", text: number });
      continue;
    }
    const name = take(/[A-Za-z_]\w*/y);
    if (name !== undefined) {
      const isCall = text[at] === "(" && !WORDS.has(name);
      tokens.push({ type: WORDS.has(name) ? "word" : isCall ? "call" : "name", text: name });
      continue;
    }
    if (text[at] === '"') {
      at += 1;
      tokens.push({ type: "string", text: readString() });
      continue;
    }
    if (text[at] === "/" && regexMayFollow(tokens.at(-1))) {
      at += 1;
      tokens.push({ type: "regex", text: readRegex() });
      continue;
    }
    const operator = take(OPERATORS);
    if (operator === undefined)
      throw new Failure(
        `syntax error at source line ${text.slice(0, at).split("\n").length}: unexpected ${JSON.stringify(text[at])}`,
        2,
      );
    tokens.push({
      type: "operator",
      text: operator === "**" ? "^" : operator === "**=" ? "^=" : operator,
    });
  }
  return [...tokens, { type: "newline", text: "\n" }, { type: "end", text: "end of program" }];

  function readString(): string {
    let result = "";
    for (;;) {
      const character = text[at];
      if (character === undefined || character === "\n")
        throw new Failure("unterminated string", 2);
      at += 1;
      if (character === '"') return result;
      result += character === "\\" ? escapeText(true) : character;
    }
  }

  function escapeText(isString: boolean): string {
    const octal = take(/[0-7]{1,3}/y);
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8) & 255);
    const next = text[at] ?? "";
    at += 1;
    const letters = new Map([
      ["n", "\n"],
      ["t", "\t"],
      ["r", "\r"],
      ["a", "\x07"],
      ["b", "\b"],
      ["f", "\f"],
      ["v", "\v"],
      ["\\", "\\"],
      ['"', '"'],
      ["/", "/"],
      ["\n", ""],
    ]);
    return letters.get(next) ?? (isString ? `\\${next}` : next);
  }

  function readRegex(): string {
    let result = "";
    let inClass = false;
    for (;;) {
      const character = text[at];
      if (character === undefined || character === "\n")
        throw new Failure("unterminated regexp", 2);
      at += 1;
      if (character === "/" && !inClass) return result;
      if (character === "\\") {
        const next = text[at] ?? "";
        at += 1;
        result += next === "/" ? "/" : `\\${next}`;
        continue;
      }
      if (character === "[" && !inClass) {
        inClass = true;
        const start = /^\^?\]?/.exec(text.slice(at, at + 2))![0];
        result += `[${start}`;
        at += start.length;
        continue;
      }
      if (character === "]") inClass = false;
      result += character;
    }
  }
}

function regexMayFollow(last: Token | undefined): boolean {
  if (last === undefined || last.type === "newline") return true;
  if (last.type === "word") return last.text !== "getline" || true;
  return last.type === "operator" && ![")", "]", "++", "--", "$"].includes(last.text);
}
