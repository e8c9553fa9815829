/** Reads the expressions of `awk`. */
import type { Token } from "./awk-lexer.js";
import type { Expression } from "./awk-syntax.js";
import { Failure } from "./call.js";

export interface Reader {
  readonly tokens: readonly Token[];
  at: number;
  depth: number;
  /** Whether `>` redirects here, and `in` belongs to a `for`. */
  inPrint: boolean;
  inFor: boolean;
}

export const peek = (reader: Reader): Token => reader.tokens[reader.at]!;
export const advance = (reader: Reader): Token =>
  reader.tokens[Math.min(reader.at++, reader.tokens.length - 1)]!;
export const isOperator = (reader: Reader, text: string): boolean => {
  const token = peek(reader);
  return token.text === text && (token.type === "operator" || token.type === "word");
};

export function accept(reader: Reader, text: string): boolean {
  if (!isOperator(reader, text)) return false;
  reader.at += 1;
  return true;
}

export function fail(reader: Reader): never {
  const { text } = peek(reader);
  const line =
    reader.tokens.slice(0, reader.at).filter(({ type }) => type === "newline").length + 1;
  throw new Failure(
    `line ${line}: syntax error at or near ${text === "\n" ? "end of line" : text}`,
    2,
  );
}

export function need(reader: Reader, text: string): void {
  if (!accept(reader, text)) fail(reader);
}

export function skipLines(reader: Reader): void {
  while (peek(reader).type === "newline") reader.at += 1;
}

export function nested<T>(reader: Reader, read: () => T): T {
  reader.depth += 1;
  if (reader.depth > 400) throw new Failure("program is nested too deeply", 2);
  const result = read();
  reader.depth -= 1;
  return result;
}

/** Expressions up to what closes them. */
export function list(reader: Reader, close: string): readonly Expression[] {
  const all: Expression[] = [];
  skipLines(reader);
  while (!accept(reader, close)) {
    all.push(expression(reader));
    skipLines(reader);
    if (!accept(reader, ",") && !isOperator(reader, close)) fail(reader);
    skipLines(reader);
  }
  return all;
}

const isTarget = ({ type }: Expression): boolean =>
  type === "variable" || type === "field" || type === "element";

export function expression(reader: Reader): Expression {
  return nested(reader, () => {
    const left = ternary(reader);
    for (const operator of ["=", "+=", "-=", "*=", "/=", "%=", "^="])
      if (isTarget(left) && accept(reader, operator)) {
        skipLines(reader);
        return { type: "assign", operator, target: left, value: expression(reader) };
      }
    return left;
  });
}

function ternary(reader: Reader): Expression {
  const condition = or(reader);
  if (!accept(reader, "?")) return condition;
  skipLines(reader);
  const yes = expression(reader);
  skipLines(reader);
  need(reader, ":");
  skipLines(reader);
  return { type: "choice", condition, yes, no: expression(reader) };
}

function or(reader: Reader): Expression {
  let left = and(reader);
  while (accept(reader, "||")) {
    skipLines(reader);
    left = { type: "binary", operator: "||", left, right: and(reader) };
  }
  return left;
}

function and(reader: Reader): Expression {
  let left = membership(reader);
  while (accept(reader, "&&")) {
    skipLines(reader);
    left = { type: "binary", operator: "&&", left, right: membership(reader) };
  }
  return left;
}

function membership(reader: Reader): Expression {
  let left = matching(reader);
  while (accept(reader, "in")) left = { type: "in", indices: [left], name: advance(reader).text };
  return left;
}

function matching(reader: Reader): Expression {
  let left = comparison(reader);
  for (;;) {
    const operator = ["~", "!~"].find((one) => accept(reader, one));
    if (operator === undefined) return left;
    left = { type: "binary", operator, left, right: comparison(reader) };
  }
}

function comparison(reader: Reader): Expression {
  const left = concatenation(reader);
  const operators = reader.inPrint
    ? ["<", "<=", "==", "!=", ">="]
    : ["<", "<=", "==", "!=", ">", ">="];
  const operator = operators.find((one) => accept(reader, one));
  if (operator === undefined) {
    // `"command" | getline`
    if (
      !reader.inPrint &&
      isOperator(reader, "|") &&
      reader.tokens[reader.at + 1]?.text === "getline"
    ) {
      reader.at += 2;
      return { type: "getline", kind: "command", from: left, target: lineTarget(reader) };
    }
    return left;
  }
  return { type: "binary", operator, left, right: concatenation(reader) };
}

export function concatenation(reader: Reader): Expression {
  let left = additive(reader);
  while (beginsValue(reader))
    left = { type: "binary", operator: " ", left, right: additive(reader) };
  return left;
}

function beginsValue(reader: Reader): boolean {
  const token = peek(reader);
  if (["number", "string", "name", "call", "regex"].includes(token.type)) return true;
  if (token.type !== "operator") return false;
  return ["$", "!", "(", "-", "+", "++", "--"].includes(token.text);
}

function additive(reader: Reader): Expression {
  let left = product(reader);
  for (;;) {
    const operator = ["+", "-"].find((one) => accept(reader, one));
    if (operator === undefined) return left;
    left = { type: "binary", operator, left, right: product(reader) };
  }
}

function product(reader: Reader): Expression {
  let left = signed(reader);
  for (;;) {
    const operator = ["*", "/", "%"].find((one) => accept(reader, one));
    if (operator === undefined) return left;
    left = { type: "binary", operator, left, right: signed(reader) };
  }
}

function signed(reader: Reader): Expression {
  return nested(reader, () => {
    const operator = ["!", "-", "+"].find((one) => accept(reader, one));
    return operator === undefined
      ? powered(reader)
      : { type: "unary", operator, operand: signed(reader) };
  });
}

function powered(reader: Reader): Expression {
  const base = stepped(reader);
  return accept(reader, "^")
    ? { type: "binary", operator: "^", left: base, right: signed(reader) }
    : base;
}

function stepped(reader: Reader): Expression {
  for (const [operator, by] of [
    ["++", 1],
    ["--", -1],
  ] as const)
    if (accept(reader, operator))
      return { type: "step", by, before: true, target: stepped(reader) };
  const value = basic(reader);
  for (const [operator, by] of [
    ["++", 1],
    ["--", -1],
  ] as const)
    if (isTarget(value) && accept(reader, operator))
      return { type: "step", by, before: false, target: value };
  return value;
}

function lineTarget(reader: Reader): Expression | undefined {
  const token = peek(reader);
  return token.type === "name" || isOperator(reader, "$") ? basic(reader) : undefined;
}

function basic(reader: Reader): Expression {
  const token = advance(reader);
  switch (token.type) {
    case "number":
      return { type: "number", value: Number(token.text) };
    case "string":
      return { type: "string", value: token.text };
    case "regex":
      return { type: "regex", source: token.text };
    case "call": {
      reader.at += 1;
      const { inPrint } = reader;
      reader.inPrint = false;
      const args = list(reader, ")");
      reader.inPrint = inPrint;
      return { type: "call", name: token.text, args };
    }
    case "name":
      if (accept(reader, "["))
        return { type: "element", name: token.text, indices: list(reader, "]") };
      return token.text === "length"
        ? { type: "call", name: "length", args: [] }
        : { type: "variable", name: token.text };
  }
  if (token.text === "$")
    return nested(reader, () => ({
      type: "field",
      index: isOperator(reader, "-") || isOperator(reader, "!") ? signed(reader) : stepped(reader),
    }));
  if (token.text === "getline") {
    const target = lineTarget(reader);
    if (accept(reader, "<"))
      return { type: "getline", kind: "file", from: stepped(reader), target };
    return { type: "getline", kind: "main", from: undefined, target };
  }
  if (token.text === "(") {
    const { inPrint } = reader;
    reader.inPrint = false;
    const inside = list(reader, ")");
    reader.inPrint = inPrint;
    if (inside.length === 1) return { type: "group", inside: inside[0]! };
    if (accept(reader, "in")) return { type: "in", indices: inside, name: advance(reader).text };
  }
  reader.at -= 1;
  return fail(reader);
}
