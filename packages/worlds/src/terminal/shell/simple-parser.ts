/** Reads simple commands: words, assignments, redirections, and what lies between them. */
import type * as syntax from "./syntax.js";
import { ShellSyntaxError } from "./syntax.js";
import { nested, readParts, readWord, type Scanner, take } from "./word-parser.js";

const OPERATOR = /;;&|;;|;&|;|&&|&|\|\||\|&?|[()]|[^\s;&|()<>]+|./y;

/** Complains about what comes next. */
export function unexpected(scanner: Scanner): never {
  skipBlanks(scanner);
  if (scanner.at >= scanner.text.length)
    throw new ShellSyntaxError("syntax error: unexpected end of file", scanner.line);
  const found = scanner.text[scanner.at] === "\n" ? "newline" : take(scanner, OPERATOR);
  throw new ShellSyntaxError(`syntax error near unexpected token \`${found}'`, scanner.line);
}

/** Skips blanks, comments and continued lines. */
export function skipBlanks(scanner: Scanner): void {
  for (;;) {
    const blanks = take(scanner, /(?:[ \t]|\\\n)+/y);
    if (blanks !== undefined) scanner.line += blanks.split("\n").length - 1;
    else if (take(scanner, /#[^\n]*/y) === undefined) return;
  }
}

/** Skips blanks and lines' ends; here-documents begin behind those. */
export function skipLines(scanner: Scanner): void {
  for (;;) {
    skipBlanks(scanner);
    if (scanner.text[scanner.at] !== "\n") return;
    endLine(scanner);
  }
}

function endLine(scanner: Scanner): void {
  scanner.at += 1;
  scanner.line += 1;
  for (const { end, tabs, quoted, parts } of scanner.documents.splice(0)) {
    let text = "";
    while (scanner.at < scanner.text.length) {
      const next = scanner.text.indexOf("\n", scanner.at);
      const to = next < 0 ? scanner.text.length : next;
      let line = scanner.text.slice(scanner.at, to);
      scanner.at = Math.min(to + 1, scanner.text.length);
      scanner.line += 1;
      if (tabs) line = line.replace(/^\t+/, "");
      if (line === end) break;
      text += `${line}\n`;
    }
    if (quoted) parts.push({ type: "text", text, quoted: true });
    else {
      const inner: Scanner = { ...scanner, text, at: 0, documents: [] };
      parts.push(...nested(inner, () => readParts(inner, "document", () => false)));
    }
  }
}

const WORD_AHEAD = /[^\s;&|()<>'"\\$`]+(?=[\s;&|()<>]|$)/y;

/** The plain word that follows, without taking it. */
export function ahead(scanner: Scanner): string {
  WORD_AHEAD.lastIndex = scanner.at;
  return WORD_AHEAD.exec(scanner.text)?.[0] ?? "";
}

/** A word, or the name of a file that commands fill: `<(…)`. */
function readArgument(scanner: Scanner): syntax.Word {
  const process = take(scanner, /[<>]\(/y);
  if (process === undefined) return readWord(scanner);
  const script = nested(scanner, () => scanner.script(scanner));
  return [{ type: "process", script, writes: process === ">(", quoted: true }];
}

const REDIRECT = /([0-9]*)(<<<|<<-?|<&|<>|<(?!\()|>>|>&|>\||>(?!\()|&>>|&>)/y;

/** Redirections, as many as there are. */
export function readRedirects(scanner: Scanner): syntax.Redirect[] {
  const redirects: syntax.Redirect[] = [];
  for (;;) {
    skipBlanks(scanner);
    const redirect = readRedirect(scanner);
    if (redirect === undefined) return redirects;
    redirects.push(redirect);
  }
}

function readRedirect(scanner: Scanner): syntax.Redirect | undefined {
  REDIRECT.lastIndex = scanner.at;
  const found = REDIRECT.exec(scanner.text);
  if (found === null) return undefined;
  scanner.at += found[0].length;
  const fd = found[1] === "" ? undefined : Number(found[1]);
  const operator = found[2]!;
  skipBlanks(scanner);
  const start = scanner.at;
  const target = readArgument(scanner);
  if (target.length === 0 && start === scanner.at) unexpected(scanner);
  if (!/^<<-?$/.test(operator)) return { fd, operator, target };
  const parts: syntax.WordPart[] = [];
  const end = target.map((part) => (part.type === "text" ? part.text : "")).join("");
  const quoted = target.some((part) => part.quoted);
  scanner.documents.push({ end, tabs: operator === "<<-", quoted, parts });
  return { fd, operator: "<<", target: parts };
}

const ASSIGNMENT = /([A-Za-z_][A-Za-z0-9_]*)(\[)?/y;

/** A command of words. */
export function simple(scanner: Scanner): syntax.SimpleCommand {
  const { line } = scanner;
  const assignments: syntax.Assignment[] = [];
  const words: syntax.Word[] = [];
  const redirects: syntax.Redirect[] = [];
  const arrays: syntax.Assignment[] = [];
  for (;;) {
    skipBlanks(scanner);
    const redirect = readRedirect(scanner);
    if (redirect !== undefined) {
      redirects.push(redirect);
      continue;
    }
    const isDeclared = declares(words) && take(scanner, ARRAY_AHEAD) !== undefined;
    const assignment = words.length === 0 || isDeclared ? readAssignment(scanner) : undefined;
    if (assignment !== undefined) {
      (isDeclared ? arrays : assignments).push(assignment);
      if (isDeclared) words.push([{ type: "text", text: assignment.name, quoted: true }]);
      continue;
    }
    const word = readArgument(scanner);
    if (word.length === 0) break;
    words.push(word);
  }
  if (assignments.length + words.length + redirects.length === 0) unexpected(scanner);
  return { type: "simple", assignments, words, arrays, redirects, line };
}

/** Commands of which an argument may be an array: `declare -a x=(1 2)`. */
const DECLARE = /^(declare|local|export|readonly|typeset)$/;
const ARRAY_AHEAD = /(?=[A-Za-z_][A-Za-z0-9_]*\+?=\()/y;

function declares(words: readonly syntax.Word[]): boolean {
  const first = words[0]?.[0];
  return first?.type === "text" && DECLARE.test(first.text);
}

function readAssignment(scanner: Scanner): syntax.Assignment | undefined {
  const start = scanner.at;
  ASSIGNMENT.lastIndex = start;
  const found = ASSIGNMENT.exec(scanner.text);
  if (found === null) return undefined;
  scanner.at += found[0].length;
  let index: syntax.Word | undefined;
  if (found[2] !== undefined) {
    index = readParts(scanner, "double", (character) => character === "]" || character === "\n");
    if (take(scanner, /\]/y) === undefined) index = undefined;
  }
  const operator = take(scanner, /\+?=/y);
  if (operator === undefined || (found[2] !== undefined && index === undefined)) {
    scanner.at = start;
    return undefined;
  }
  const base = { name: found[1]!, ...(index && { index }), append: operator === "+=" };
  if (index !== undefined || take(scanner, /\(/y) === undefined)
    return { ...base, value: readWord(scanner), isArray: false };
  const elements: syntax.ArrayElement[] = [];
  for (;;) {
    skipLines(scanner);
    if (take(scanner, /\)/y) !== undefined) return { ...base, value: elements, isArray: true };
    let at: syntax.Word | undefined;
    if (take(scanner, /\[(?=[^\]\n]*\]=)/y) !== undefined) {
      at = readParts(scanner, "double", (character) => character === "]");
      scanner.at += 2;
    }
    const value = readWord(scanner);
    if (value.length === 0 && at === undefined) unexpected(scanner);
    elements.push({ ...(at && { index: at }), value });
  }
}
