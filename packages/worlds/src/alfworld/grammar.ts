/**
 * The `.twl2` text of a game: `grammar :: """json"""` blocks and `action name { … }` with the
 * command's template, the feedback and more grammar. A symbol defined again replaces the earlier
 * one.
 */

import { excerpt, fault, jsonFault, lineAt, type Source } from "./games.js";
import { createMemo } from "./memo.js";

// The right-hand sides of a game's grammar: literal text, `#symbol#`, `{expression}`,
// `{expression | query}` and lists `[{… | query}]`.

/** The attributes of an object that an expression may use. */
const ATTRIBUTES = ["name", "id", "type", "definite", "indefinite"] as const;
export type Attribute = (typeof ATTRIBUTES)[number];

export type Expression =
  | { readonly op: "text"; readonly text: string }
  | { readonly op: "attribute"; readonly variable: string; readonly attribute: Attribute }
  | { readonly op: "or" | "+"; readonly parts: readonly Expression[] };

/** One condition of a query: a fact's name and its typed placeholders. */
export interface Pattern {
  readonly name: string;
  readonly placeholders: readonly { readonly name: string; readonly type: string }[];
}

/** A conjunction, solved from left to right. */
export type Query = readonly Pattern[];

export type Piece =
  | { readonly op: "literal"; readonly text: string }
  | { readonly op: "symbol"; readonly name: string }
  | Slot
  | { readonly op: "list"; readonly slot: Slot };

/** An expression or a symbol, once for every answer of its query. */
export interface Slot {
  readonly op: "slot";
  readonly value: Expression | { readonly op: "symbol"; readonly name: string };
  readonly query: Query | undefined;
}

export type Phrase = readonly Piece[];

/** An error in a phrase; the grammar parser adds file and line. */
class PhraseError extends Error {
  override readonly name = "PhraseError";
}

/**
 * Parses a right-hand side. Leading white space is dropped, and an unmatched closing bracket ends
 * it: the original does both, and both occur in the games.
 */
function parsePhrase(text: string): Phrase {
  const pieces: Piece[] = [];
  let at = text.length - text.trimStart().length;
  const upTo = (mark: string, what: string): string => {
    const end = text.indexOf(mark, at);
    if (end === -1)
      throw new PhraseError(`${what} is not closed by \`${mark}\`: ${excerpt(text.slice(at - 1))}`);
    const inside = text.slice(at, end);
    at = end + 1;
    return inside;
  };
  while (at < text.length) {
    const char = text[at]!;
    if (char === "#") {
      at++;
      pieces.push(symbol(upTo("#", "a symbol")));
    } else if (char === "{") {
      at++;
      pieces.push(parseSlot(upTo("}", "an expression")));
    } else if (char === "[") {
      at++;
      if (text[at] !== "{")
        throw new PhraseError(`expected \`{\` after \`[\`: ${excerpt(text.slice(at - 1))}`);
      at++;
      const slot = parseSlot(upTo("}", "an expression"));
      if (text[at] !== "]")
        throw new PhraseError(`a list is not closed by \`}]\`: ${excerpt(text)}`);
      at++;
      pieces.push({ op: "list", slot });
    } else if (char === "}" || char === "]") {
      break;
    } else {
      const length = text.slice(at).search(/[#{}[\]]/);
      const end = length === -1 ? text.length : at + length;
      pieces.push({ op: "literal", text: text.slice(at, end) });
      at = end;
    }
  }
  return pieces;
}

function symbol(name: string): { readonly op: "symbol"; readonly name: string } {
  if (!/^[\w()/!<>\-\s,.]+$/.test(name))
    throw new PhraseError(`expected the name of a symbol between \`#\`, found ${excerpt(name)}`);
  return { op: "symbol", name };
}

function parseSlot(inside: string): Slot {
  const bar = inside.indexOf("|");
  const value = (bar === -1 ? inside : inside.slice(0, bar)).trim();
  const query = bar === -1 ? undefined : parseQuery(inside.slice(bar + 1));
  if (value.startsWith("#")) {
    if (value.length < 3 || !value.endsWith("#"))
      throw new PhraseError(`a symbol is not closed by \`#\`: ${excerpt(inside)}`);
    return { op: "slot", value: symbol(value.slice(1, -1)), query };
  }
  return { op: "slot", value: parseExpression(value), query };
}

/** Parses `a.name + ' ' + b.name or 'x'`; `+` binds more tightly than `or`. */
function parseExpression(text: string): Expression {
  const tokens = text.match(/'[^']*'|"[^"]*"|[\w.]+|\S/g) ?? [];
  let at = 0;
  const sequence = (op: "or" | "+", next: () => Expression): Expression => {
    const parts = [next()];
    while (tokens[at] === op) {
      at++;
      parts.push(next());
    }
    return parts.length === 1 ? parts[0]! : { op, parts };
  };
  const operand = (): Expression => {
    const token = tokens[at++];
    const quoted = token === undefined ? undefined : /^(['"])(.*)\1$/s.exec(token);
    if (quoted) return { op: "text", text: quoted[2]! };
    const access = token === undefined ? undefined : /^([a-z_]\w*)(?:\.(\w+))?$/i.exec(token);
    if (!access) {
      const found = token === undefined ? "nothing" : excerpt(token);
      throw new PhraseError(`expected \`variable.attribute\` or a text in quotes, found ${found}`);
    }
    const attribute = ATTRIBUTES.find((each) => each === (access[2] ?? "name"));
    if (attribute === undefined) {
      const known = ATTRIBUTES.join(", ");
      throw new PhraseError(`unknown attribute \`${access[2]}\`; known are ${known}`);
    }
    return { op: "attribute", variable: access[1]!, attribute };
  };
  const expression = sequence("or", () => sequence("+", operand));
  if (at < tokens.length)
    throw new PhraseError(`expected \`+\`, \`or\` or the end, found ${excerpt(tokens[at]!)}`);
  return expression;
}

/**
 * Parses `p(x:type) & q(x:type, y:type)`; a placeholder without a type has the type of its name.
 */
function parseQuery(text: string): Query {
  return text.split("&").map((part) => {
    const parsed = /^\s*([\w-]+)\s*\(([^()]*)\)\s*$/.exec(part);
    if (!parsed)
      throw new PhraseError(`expected \`predicate(name:type, …)\`, found ${excerpt(part)}`);
    const placeholders = parsed[2]!.trim() === "" ? [] : parsed[2]!.split(",").map(placeholder);
    return { name: parsed[1]!, placeholders };
  });
}

function placeholder(text: string): { readonly name: string; readonly type: string } {
  const parsed = /^\s*(\w+)\s*(?::\s*([\w-]+)\s*)?$/.exec(text);
  if (!parsed) throw new PhraseError(`expected \`name:type\`, found ${excerpt(text)}`);
  return { name: parsed[1]!, type: parsed[2] ?? parsed[1]! };
}

/** One way to expand a symbol; the first one whose condition has an answer is taken. */
interface Rule {
  readonly condition: Query | undefined;
  readonly phrase: Phrase;
}

/** An action's command template and the game's response. */
interface ActionText {
  readonly template: Phrase;
  readonly feedback: Phrase;
}

export interface Grammar {
  readonly rules: ReadonlyMap<string, readonly Rule[]>;
  /** By the action's name in lower case, as PDDL has it. */
  readonly actions: ReadonlyMap<string, ActionText>;
}

/** Blocks, phrases and conditions are the same in many games: each is parsed once. */
const blocks = createMemo<RuleSet>(256);
const phrases = createMemo<Phrase>(4096);
const queries = createMemo<Query>(4096);

/** What one block defines. */
type RuleSet = ReadonlyMap<string, readonly Rule[]>;

/** Walks through the text of a grammar, word by word. */
interface Cursor {
  readonly source: Source;
  at: number;
}

/** Parses a game's grammar. */
export function parseGrammar(source: Source): Grammar {
  const cursor: Cursor = { source, at: 0 };
  const rules = new Map<string, readonly Rule[]>();
  const actions = new Map<string, ActionText>();
  for (let word = nextWord(cursor); word !== undefined; word = nextWord(cursor)) {
    if (word === "grammar") {
      expect(cursor, "::");
      addRules(source, readBlock(cursor), rules);
      expect(cursor, ";");
    } else if (word === "action") {
      readAction(cursor, rules, actions);
    } else {
      throw here(cursor, `expected \`grammar\` or \`action\`, found ${excerpt(word)}`);
    }
  }
  return { rules, actions };
}

function here(cursor: Cursor, message: string) {
  return fault(cursor.source, lineAt(cursor.source.text, cursor.at), message);
}

const SPACE = /(?:\s+|#[^\n]*)*/y;
const WORD = /[\w/-]+|::|[{};]|\S/y;

/** The next word or punctuation mark, after white space and `#` comments. */
function nextWord(cursor: Cursor): string | undefined {
  skipSpace(cursor);
  WORD.lastIndex = cursor.at;
  const word = WORD.exec(cursor.source.text)?.[0];
  cursor.at += word?.length ?? 0;
  return word;
}

function skipSpace(cursor: Cursor): void {
  SPACE.lastIndex = cursor.at;
  cursor.at += SPACE.exec(cursor.source.text)?.[0].length ?? 0;
}

function expect(cursor: Cursor, mark: string): void {
  const word = nextWord(cursor);
  if (word !== mark)
    throw here(
      cursor,
      `expected \`${mark}\`, found ${word === undefined ? "the end" : excerpt(word)}`,
    );
}

interface Text {
  readonly text: string;
  readonly offset: number;
}

function readQuoted(cursor: Cursor, quote: string): Text {
  skipSpace(cursor);
  const { text } = cursor.source;
  if (!text.startsWith(quote, cursor.at))
    throw here(cursor, `expected a text that starts with ${quote}`);
  const offset = cursor.at + quote.length;
  const end = text.indexOf(quote, offset);
  if (end === -1) throw here(cursor, `the text that starts here is not closed by ${quote}`);
  cursor.at = end + quote.length;
  return { text: text.slice(offset, end), offset };
}

function readBlock(cursor: Cursor): Text {
  return readQuoted(cursor, '"""');
}

function readAction(
  cursor: Cursor,
  rules: Map<string, readonly Rule[]>,
  actions: Map<string, ActionText>,
): void {
  const { source } = cursor;
  const name = nextWord(cursor);
  if (name === undefined || !/^[\w/-]+$/.test(name))
    throw here(cursor, `expected an action's name, found ${excerpt(name ?? "the end")}`);
  expect(cursor, "{");
  let template: Phrase | undefined;
  let feedback: Phrase | undefined;
  for (;;) {
    const word = nextWord(cursor);
    if (word === "}") break;
    if (word !== "template" && word !== "feedback" && word !== "grammar" && word !== "pddl") {
      const found = excerpt(word ?? "the end");
      throw here(cursor, `expected a field of action \`${name}\` or \`}\`, found ${found}`);
    }
    expect(cursor, "::");
    if (word === "template" || word === "feedback") {
      const { text, offset } = readQuoted(cursor, '"');
      const phrase = readPhrase(source, text, () => offset);
      template = word === "template" ? phrase : template;
      feedback = word === "feedback" ? phrase : feedback;
    } else {
      const block = readBlock(cursor);
      if (word === "grammar") addRules(source, block, rules);
    }
    expect(cursor, ";");
  }
  if (template === undefined || feedback === undefined) {
    const missing = template === undefined ? "template" : "feedback";
    throw here(cursor, `action \`${name}\` has no \`${missing}\``);
  }
  actions.set(name.toLowerCase(), { template, feedback });
}

function readPhrase(source: Source, text: string, offset: () => number): Phrase {
  return located(source, offset, () => phrases(text, () => parsePhrase(text)));
}

/** Runs a phrase parser and adds file and line to its errors. */
function located<Value>(source: Source, offset: () => number, parse: () => Value): Value {
  try {
    return parse();
  } catch (error) {
    if (error instanceof PhraseError)
      throw fault(source, lineAt(source.text, offset()), error.message);
    throw error;
  }
}

function addRules(source: Source, block: Text, rules: Map<string, readonly Rule[]>): void {
  for (const [name, defined] of blocks(block.text, () => readRules(source, block)))
    rules.set(name, defined);
}

function readRules(source: Source, block: Text): RuleSet {
  const rules = new Map<string, readonly Rule[]>();
  // Lines that start with `#` are comments; they are blanked instead of cut, so that offsets stay
  // correct.
  const json = block.text.replace(/^[ \t]*#[^\n]*/gm, (line) => " ".repeat(line.length));
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch (error) {
    throw jsonFault(source, json, block.offset, error);
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    const line = lineAt(source.text, block.offset);
    throw fault(source, line, "expected an object of symbols in a grammar block");
  }
  for (const [name, entries] of Object.entries(parsed)) {
    const offsetOf = (text: string) =>
      block.offset + Math.max(0, json.indexOf(JSON.stringify(text), json.indexOf(`"${name}"`)));
    const wrong = (what: string) =>
      fault(source, lineAt(source.text, offsetOf(name)), `symbol \`${name}\`: expected ${what}`);
    if (!Array.isArray(entries) || entries.length === 0) throw wrong("a list of rules");
    rules.set(
      name,
      entries.map((entry: unknown): Rule => {
        const { rhs, condition } = asRecord(entry);
        if (typeof rhs !== "string") throw wrong('a rule with a text `"rhs"`');
        if (condition !== undefined && typeof condition !== "string")
          throw wrong('a text as `"condition"`');
        const phrase = readPhrase(source, rhs, () => offsetOf(rhs));
        if (condition === undefined || condition === "") return { condition: undefined, phrase };
        const parse = () => queries(condition, () => parseQuery(condition));
        return { condition: located(source, () => offsetOf(condition), parse), phrase };
      }),
    );
  }
  return rules;
}

function asRecord(value: unknown): { readonly rhs?: unknown; readonly condition?: unknown } {
  return typeof value === "object" && value !== null ? value : {};
}
