/**
 * The right-hand sides of a game's grammar: literal text, `#symbol#`, `{expression}`,
 * `{expression | query}` and lists `[{… | query}]`.
 */
import { excerpt } from "./source.js";

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
export class PhraseError extends Error {
  override readonly name = "PhraseError";
}

/**
 * Parses a right-hand side. Leading white space is dropped, and an unmatched closing bracket ends
 * it: the original does both, and both occur in the games.
 */
export function parsePhrase(text: string): Phrase {
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
export function parseQuery(text: string): Query {
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
