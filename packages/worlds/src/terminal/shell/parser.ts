/** Reads command lines and scripts of bash. */

import {
  ahead,
  readRedirects,
  simple,
  skipBlanks,
  skipLines,
  unexpected,
} from "./simple-parser.js";
import type * as syntax from "./syntax.js";
import { ShellSyntaxError } from "./syntax.js";
import { readTest } from "./test-parser.js";
import {
  expressionOf,
  insideParentheses,
  nested,
  readWord,
  type Scanner,
  take,
} from "./word-parser.js";

const KEPT = 400;
const parsed = new Map<string, syntax.Script>();

/** Reads a whole text; trees do not change, so they are kept. */
export function parse(text: string): syntax.Script {
  const known = parsed.get(text);
  if (known !== undefined) return known;
  const scanner: Scanner = { text, at: 0, line: 1, depth: 0, documents: [], script: substitution };
  const script = readScript(scanner);
  if (scanner.at < text.length) unexpected(scanner);
  if (parsed.size >= KEPT) parsed.delete(parsed.keys().next().value!);
  if (text.length < 20_000) parsed.set(text, script);
  return script;
}

/** The commands of `$(…)`, and its end. */
function substitution(scanner: Scanner): syntax.Script {
  const script = readScript(scanner);
  if (scanner.text[scanner.at] !== ")") {
    if (scanner.at < scanner.text.length) unexpected(scanner);
    throw new ShellSyntaxError("unexpected EOF while looking for matching `)'", scanner.line);
  }
  scanner.at += 1;
  return script;
}

const CLOSERS = new Set("then else elif fi do done esac }".split(" "));

/** Commands up to what closes them, which is left. */
function readScript(scanner: Scanner): syntax.Script {
  const chains: syntax.Chain[] = [];
  for (;;) {
    skipLines(scanner);
    if (isClosed(scanner)) return chains;
    const chain = readChain(scanner);
    skipBlanks(scanner);
    const separator = take(scanner, /;(?![;&])|&(?!&)/y);
    chains.push(separator === "&" ? { ...chain, background: true } : chain);
    if (separator === undefined && scanner.text[scanner.at] !== "\n" && !isClosed(scanner))
      unexpected(scanner);
  }
}

function isClosed(scanner: Scanner): boolean {
  const next = scanner.text[scanner.at];
  return (
    next === undefined ||
    next === ")" ||
    (next === ";" && /^;[;&]/.test(scanner.text.slice(scanner.at, scanner.at + 2))) ||
    CLOSERS.has(ahead(scanner))
  );
}

function readChain(scanner: Scanner): syntax.Chain {
  const pipelines = [readPipeline(scanner)];
  const operators: ("&&" | "||")[] = [];
  for (;;) {
    skipBlanks(scanner);
    const operator = take(scanner, /&&|\|\|/y) as "&&" | "||" | undefined;
    if (operator === undefined) return { pipelines, operators, background: false };
    operators.push(operator);
    skipLines(scanner);
    pipelines.push(readPipeline(scanner));
  }
}

function readPipeline(scanner: Scanner): syntax.Pipeline {
  let negated = false;
  for (; ahead(scanner) === "!" || ahead(scanner) === "time"; skipBlanks(scanner))
    if (take(scanner, /!|time( -p)?/y) === "!") negated = !negated;
  const commands = [readCommand(scanner)];
  for (;;) {
    skipBlanks(scanner);
    const pipe = take(scanner, /\|&|\|(?!\|)/y);
    if (pipe === undefined) return { commands, negated };
    if (pipe === "|&") {
      const both = {
        fd: 2,
        operator: ">&",
        target: [{ type: "text", text: "1", quoted: false }],
      } as const;
      const last = commands.pop()!;
      commands.push(
        last.type === "function" ? last : { ...last, redirects: [...last.redirects, both] },
      );
    }
    skipLines(scanner);
    commands.push(readCommand(scanner));
  }
}

const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const FUNCTION = /([^\s;&|()<>'"\\$`=]+)[ \t]*\([ \t]*\)/y;

function readCommand(scanner: Scanner): syntax.Command {
  return nested(scanner, () => {
    const { line } = scanner;
    const word = ahead(scanner);
    if (word === "function") {
      take(scanner, /function[ \t]+/y);
      const name = take(scanner, /[^\s;&|()<>'"\\$`]+/y) ?? unexpected(scanner);
      take(scanner, /[ \t]*\([ \t]*\)/y);
      return definition(scanner, name);
    }
    const inner = compound(scanner, word);
    if (inner !== undefined)
      return { type: "compound", inner, redirects: readRedirects(scanner), line };
    FUNCTION.lastIndex = scanner.at;
    const name = FUNCTION.exec(scanner.text);
    if (name !== null) {
      scanner.at += name[0].length;
      return definition(scanner, name[1]!);
    }
    return simple(scanner);
  });
}

function definition(scanner: Scanner, name: string): syntax.FunctionDefinition {
  skipLines(scanner);
  const body = readCommand(scanner);
  if (body.type !== "compound") unexpected(scanner);
  return { type: "function", name, body };
}

/** A command that begins with a word of the language, or a bracket. */
function compound(scanner: Scanner, word: string): syntax.CompoundBody | undefined {
  const after = (): void => {
    scanner.at += word.length;
  };
  const need = (wanted: string): void => {
    skipLines(scanner);
    if (ahead(scanner) !== wanted) unexpected(scanner);
    scanner.at += wanted.length;
  };
  const body = (): syntax.Script => {
    const script = readScript(scanner);
    return script.length > 0 ? script : unexpected(scanner);
  };
  if (scanner.text.startsWith("((", scanner.at)) {
    const inside = insideParentheses(scanner, scanner.at + 2);
    if (inside !== undefined) {
      scanner.at += inside.length + 4;
      return { type: "arithmetic", expression: expressionOf(scanner, inside) };
    }
  }
  if (scanner.text[scanner.at] === "(") {
    scanner.at += 1;
    const script = body();
    if (take(scanner, /\)/y) === undefined) unexpected(scanner);
    return { type: "subshell", body: script };
  }
  switch (word) {
    case "{": {
      after();
      const script = body();
      need("}");
      return { type: "group", body: script };
    }
    case "if": {
      const branches: { condition: syntax.Script; body: syntax.Script }[] = [];
      let otherwise: syntax.Script | undefined;
      after();
      for (;;) {
        const condition = body();
        need("then");
        branches.push({ condition, body: body() });
        skipLines(scanner);
        const next = ahead(scanner);
        if (next === "elif") {
          scanner.at += 4;
          continue;
        }
        if (next === "else") {
          scanner.at += 4;
          otherwise = body();
        }
        need("fi");
        return { type: "if", branches, otherwise };
      }
    }
    case "while":
    case "until": {
      after();
      const condition = body();
      return { type: "loop", until: word === "until", condition, body: loopBody() };
    }
    case "for":
      after();
      return readFor(scanner, loopBody);
    case "case":
      after();
      return readCase(scanner, need);
    case "[[":
      after();
      return { type: "test", test: readTest(scanner) };
    default:
      return undefined;
  }
  function loopBody(): syntax.Script {
    need("do");
    const script = body();
    need("done");
    return script;
  }
}

function readFor(scanner: Scanner, loopBody: () => syntax.Script): syntax.CompoundBody {
  skipBlanks(scanner);
  if (scanner.text.startsWith("((", scanner.at)) {
    const inside = insideParentheses(scanner, scanner.at + 2) ?? unexpected(scanner);
    scanner.at += inside.length + 4;
    const parts = inside.split(";");
    if (parts.length !== 3) unexpected(scanner);
    take(scanner, /[ \t]*;/y);
    const words = parts.map((part) => expressionOf(scanner, part));
    return { type: "count", parts: words, body: loopBody() };
  }
  const name = take(scanner, NAME) ?? unexpected(scanner);
  skipLines(scanner);
  let words: syntax.Word[] | undefined;
  if (ahead(scanner) === "in") {
    scanner.at += 2;
    words = [];
    for (;;) {
      skipBlanks(scanner);
      const word = readWord(scanner);
      if (word.length === 0) break;
      words.push(word);
    }
  }
  skipBlanks(scanner);
  take(scanner, /;/y);
  return { type: "for", name, words, body: loopBody() };
}

function readCase(scanner: Scanner, need: (word: string) => void): syntax.CompoundBody {
  skipBlanks(scanner);
  const word = readWord(scanner);
  if (word.length === 0) unexpected(scanner);
  need("in");
  const items: syntax.CaseItem[] = [];
  for (;;) {
    skipLines(scanner);
    if (ahead(scanner) === "esac") break;
    take(scanner, /\([ \t]*/y);
    const patterns: syntax.Word[] = [];
    do {
      skipBlanks(scanner);
      const pattern = readWord(scanner);
      if (pattern.length === 0) unexpected(scanner);
      patterns.push(pattern);
      skipBlanks(scanner);
    } while (take(scanner, /\|/y) !== undefined);
    if (take(scanner, /\)/y) === undefined) unexpected(scanner);
    const body = readScript(scanner);
    const end = take(scanner, /;;&|;;|;&/y) as syntax.CaseItem["end"] | undefined;
    items.push({ patterns, body, end: end ?? ";;" });
    skipLines(scanner);
    if (end === undefined && ahead(scanner) !== "esac") unexpected(scanner);
  }
  need("esac");
  return { type: "case", word, items };
}
