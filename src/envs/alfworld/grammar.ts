/**
 * The `.twl2` text of a game: `grammar :: """json"""` blocks and `action name { … }` with the
 * command's template, the feedback and more grammar. A symbol defined again replaces the earlier
 * one.
 */
import { createMemo } from "./memo.js";
import { type Phrase, PhraseError, parsePhrase, parseQuery, type Query } from "./phrase.js";
import { excerpt, fault, jsonFault, lineAt, type Source } from "./source.js";

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
