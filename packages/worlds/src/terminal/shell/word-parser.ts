/** Reads words: quotes, and what `$` begins. */
import {
  type Parameter,
  type Script,
  ShellSyntaxError,
  type Word,
  type WordPart,
} from "./syntax.js";

/** A place in a text that is being read. */
export interface Scanner {
  readonly text: string;
  at: number;
  line: number;
  /** How deep what is being read is nested. */
  depth: number;
  /** Here-documents that begin at the next line. */
  readonly documents: { end: string; tabs: boolean; quoted: boolean; parts: WordPart[] }[];
  /** Reads commands up to a closing parenthesis. */
  readonly script: (scanner: Scanner) => Script;
}

const DEEPEST = 200;
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const OPERATOR = /:[-=?+]|[-=?+]|##?|%%?|\/[/#%]?|\^\^?|,,?|@[A-Za-z]|:/y;

/** Matches at the present place, and moves behind it. */
export function take(scanner: Scanner, pattern: RegExp): string | undefined {
  pattern.lastIndex = scanner.at;
  const found = pattern.exec(scanner.text)?.[0];
  if (found !== undefined) scanner.at += found.length;
  return found;
}

const peek = ({ text, at }: Scanner, ahead = 0): string => text[at + ahead] ?? "";

/** Complains about an end that came too early. */
export function unclosed(scanner: Scanner, wanted: string): never {
  throw new ShellSyntaxError(
    `unexpected EOF while looking for matching \`${wanted}'`,
    scanner.line,
  );
}

/** Goes one level deeper, unless that is too deep. */
export function nested<T>(scanner: Scanner, read: () => T): T {
  scanner.depth += 1;
  if (scanner.depth > DEEPEST) throw new ShellSyntaxError("nested too deeply", scanner.line);
  const result = read();
  scanner.depth -= 1;
  return result;
}

/** How quotes are read: as in a command, inside double quotes, or in a here-document. */
type Mode = "plain" | "double" | "document";

const END_OF_WORD = new Set(" \t\n;&|<>()");

/** A word of a command; empty if none begins here. */
export const readWord = (scanner: Scanner): Word =>
  readParts(scanner, "plain", (character) => END_OF_WORD.has(character));

/** Reads parts until a character that ends them outside quotes, or the end. */
export function readParts(
  scanner: Scanner,
  mode: Mode,
  ends: (character: string) => boolean,
): WordPart[] {
  const parts: WordPart[] = [];
  const quoted = mode !== "plain";
  let text = "";
  const flush = (): void => {
    if (text !== "") parts.push({ type: "text", text, quoted });
    text = "";
  };
  const add = (part: WordPart): void => {
    flush();
    parts.push(part);
  };
  while (scanner.at < scanner.text.length) {
    const character = peek(scanner);
    if (character === "\\") {
      const next = peek(scanner, 1);
      scanner.at += 2;
      if (next === "\n") scanner.line += 1;
      else if (mode === "plain") add({ type: "text", text: next, quoted: true });
      else if (next === '"' ? mode === "double" : "$`\\".includes(next) && next !== "")
        add({ type: "text", text: next, quoted: true });
      else if (mode === "double" && next !== "" && ends(next))
        add({ type: "text", text: next, quoted: true });
      else text += `\\${next}`;
      continue;
    }
    if (ends(character)) break;
    if (character === "'" && mode === "plain") {
      const end = scanner.text.indexOf("'", scanner.at + 1);
      if (end < 0) unclosed(scanner, "'");
      const inside = scanner.text.slice(scanner.at + 1, end);
      countLines(scanner, inside);
      scanner.at = end + 1;
      add({ type: "text", text: inside, quoted: true });
    } else if (character === '"' && mode !== "document") {
      scanner.at += 1;
      flush();
      const inside = nested(scanner, () => readParts(scanner, "double", (one) => one === '"'));
      if (peek(scanner) !== '"') unclosed(scanner, '"');
      scanner.at += 1;
      parts.push(
        ...(inside.length > 0 ? inside : [{ type: "text", text: "", quoted: true } as const]),
      );
    } else if (character === "`") add(backquoted(scanner, quoted));
    else if (character === "$") {
      const part = dollar(scanner, mode);
      if (part === undefined) {
        text += "$";
        scanner.at += 1;
      } else add(part);
    } else {
      if (character === "\n") scanner.line += 1;
      text += character;
      scanner.at += 1;
    }
  }
  flush();
  return parts;
}

function countLines(scanner: Scanner, text: string): void {
  for (const character of text) if (character === "\n") scanner.line += 1;
}

/** What a `$` begins, if anything. */
function dollar(scanner: Scanner, mode: Mode): WordPart | undefined {
  const quoted = mode !== "plain";
  const next = peek(scanner, 1);
  if (next === "(") {
    const expression = peek(scanner, 2) === "(" ? arithmetic(scanner, 3, quoted) : undefined;
    if (expression !== undefined) return expression;
    scanner.at += 2;
    const script = nested(scanner, () => scanner.script(scanner));
    return { type: "command", script, quoted };
  }
  if (next === "[") return undefined;
  if (next === "{") {
    scanner.at += 2;
    return nested(scanner, () => braced(scanner, quoted));
  }
  if (next === "'" && mode === "plain") {
    scanner.at += 2;
    return { type: "text", text: escaped(scanner), quoted: true };
  }
  if (next === '"' && mode === "plain") {
    scanner.at += 1;
    const text = "";
    return { type: "text", text, quoted: false };
  }
  if (/[0-9@*#?$!-]/.test(next)) {
    scanner.at += 2;
    return { type: "parameter", name: next, quoted };
  }
  scanner.at += 1;
  const name = take(scanner, NAME);
  if (name !== undefined) return { type: "parameter", name, quoted };
  scanner.at -= 1;
  return undefined;
}

/** `$((…))`, or undefined where its parentheses are those of a command. */
function arithmetic(scanner: Scanner, start: number, quoted: boolean): WordPart | undefined {
  const inside = insideParentheses(scanner, scanner.at + start);
  if (inside === undefined) return undefined;
  scanner.at += start + inside.length + 2;
  return { type: "arithmetic", expression: expressionOf(scanner, inside), quoted };
}

/** The text from here to the `))` that closes what is already open, if that is how it ends. */
export function insideParentheses({ text }: Scanner, from: number): string | undefined {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    if (text[at] === "(") depth += 1;
    if (text[at] !== ")") continue;
    if (depth === 0) return text[at + 1] === ")" ? text.slice(from, at) : undefined;
    depth -= 1;
  }
  return undefined;
}

/** A text in which only `$` means something. */
export function expressionOf(scanner: Scanner, text: string): Word {
  const inner: Scanner = { ...scanner, text: text.replaceAll('"', ""), at: 0, documents: [] };
  return nested(inner, () => readParts(inner, "document", () => false));
}

function backquoted(scanner: Scanner, quoted: boolean): WordPart {
  let text = "";
  scanner.at += 1;
  for (;;) {
    const character = peek(scanner);
    if (character === "") unclosed(scanner, "`");
    scanner.at += 1;
    if (character === "`") break;
    const next = peek(scanner);
    if (character === "\\" && next !== "" && `\`\\$${quoted ? '"' : ""}`.includes(next)) {
      text += next;
      scanner.at += 1;
    } else text += character;
  }
  const inner: Scanner = { ...scanner, text: `${text}\n)`, at: 0, documents: [] };
  return { type: "command", script: nested(inner, () => inner.script(inner)), quoted };
}

/** `${…}`, behind its brace. */
function braced(scanner: Scanner, quoted: boolean): Parameter {
  let form: Parameter["form"];
  const next = peek(scanner, 1);
  if (peek(scanner) === "#" && next !== "}" && !/[-:=?+%#/]/.test(next)) form = "length";
  else if (peek(scanner) === "!" && /[A-Za-z_0-9@*#]/.test(next)) form = "indirect";
  if (form !== undefined) scanner.at += 1;
  const name = take(scanner, NAME) ?? take(scanner, /[0-9]+|[@*#?$!-]/y);
  if (name === undefined) return badSubstitution(scanner);
  let index: Word | undefined;
  if (peek(scanner) === "[" && /^[A-Za-z_]/.test(name)) {
    scanner.at += 1;
    index = readParts(scanner, "double", (character) => character === "]");
    if (peek(scanner) !== "]") unclosed(scanner, "}");
    scanner.at += 1;
    const all = index[0]?.type === "text" && /^[@*]$/.test(index[0].text);
    if (form === "indirect" && all) form = "indices";
  }
  const base = { type: "parameter", name, quoted } as const;
  const known = { ...base, ...(index && { index }), ...(form && { form }) };
  if (form === "indirect" && /^[*@]\}/.test(scanner.text.slice(scanner.at, scanner.at + 2))) {
    scanner.at += 2;
    return { ...known, form: "names" };
  }
  const operator = take(scanner, OPERATOR);
  if (operator === undefined) return closed(scanner, known);
  const isPattern = /^[#%/^,]/.test(operator);
  const mode: Mode = quoted && !isPattern ? "double" : "plain";
  const stops = operator.startsWith("/") ? "/}" : operator === ":" ? ":}" : "}";
  const operand = readParts(scanner, mode, (character) => stops.includes(character));
  if (peek(scanner) === "}" || stops === "}")
    return closed(scanner, { ...known, operator, operand });
  scanner.at += 1;
  const second = readParts(scanner, mode, (character) => character === "}");
  return closed(scanner, { ...known, operator, operand, second });
}

function closed(scanner: Scanner, parameter: Parameter): Parameter {
  if (peek(scanner) === "") unclosed(scanner, "}");
  if (peek(scanner) !== "}") return badSubstitution(scanner);
  scanner.at += 1;
  return parameter;
}

function badSubstitution(scanner: Scanner): never {
  const start = scanner.text.lastIndexOf("${", scanner.at);
  const end = scanner.text.indexOf("}", scanner.at);
  if (end < 0) unclosed(scanner, "}");
  throw new ShellSyntaxError(
    `${scanner.text.slice(start, end + 1)}: bad substitution`,
    scanner.line,
  );
}

const ESCAPES = new Map(
  Object.entries({ n: "\n", t: "\t", r: "\r", a: "\x07", b: "\b", e: "\x1b", f: "\f", v: "\v" }),
);

/** The text of `$'…'`, behind its quote. */
function escaped(scanner: Scanner): string {
  let text = "";
  for (;;) {
    const character = peek(scanner);
    if (character === "") unclosed(scanner, "'");
    scanner.at += 1;
    if (character === "'") return text;
    if (character !== "\\") {
      text += character;
      continue;
    }
    const code = take(scanner, /x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|[0-7]{1,3}/y);
    if (code !== undefined) {
      const base = /^[xu]/.test(code) ? 16 : 8;
      const value = Number.parseInt(code.replace(/^[xu]/, ""), base);
      text += code.startsWith("u")
        ? Buffer.from(String.fromCharCode(value)).toString("latin1")
        : String.fromCharCode(value & 255);
      continue;
    }
    const next = peek(scanner);
    scanner.at += 1;
    text += ESCAPES.get(next) ?? ("\\'\"?".includes(next) ? next : `\\${next}`);
  }
}
