/** Reads the programs of `awk`. */

import {
  accept,
  advance,
  concatenation,
  expression,
  fail,
  isOperator,
  list,
  need,
  nested,
  peek,
  type Reader,
  skipLines,
} from "./awk-expressions.js";
import { awkTokens } from "./awk-lexer.js";
import type { AwkFunction, AwkProgram, Expression, Statement } from "./awk-syntax.js";

const KEPT = 100;
const parsed = new Map<string, AwkProgram>();

/** Reads a program. */
export function parseAwk(text: string): AwkProgram {
  const known = parsed.get(text);
  if (known !== undefined) return known;
  const reader: Reader = { tokens: awkTokens(text), at: 0, depth: 0, inPrint: false, inFor: false };
  const begin: Statement[] = [];
  const end: Statement[] = [];
  const rules: {
    from: Expression | undefined;
    to: Expression | undefined;
    body: Statement | undefined;
  }[] = [];
  const functions = new Map<string, AwkFunction>();
  for (skipEnds(reader); peek(reader).type !== "end"; skipEnds(reader)) {
    if (accept(reader, "BEGIN")) begin.push(block(reader));
    else if (accept(reader, "END")) end.push(block(reader));
    else if (accept(reader, "function") || accept(reader, "func")) {
      const { text: name } = advance(reader);
      need(reader, "(");
      const parameters: string[] = [];
      while (!accept(reader, ")")) {
        parameters.push(advance(reader).text);
        accept(reader, ",");
        skipLines(reader);
      }
      skipLines(reader);
      functions.set(name, { parameters, body: block(reader) });
    } else {
      let from: Expression | undefined;
      let to: Expression | undefined;
      if (peek(reader).text !== "{") {
        from = expression(reader);
        if (accept(reader, ",")) {
          skipLines(reader);
          to = expression(reader);
        }
      }
      rules.push({ from, to, body: isOperator(reader, "{") ? block(reader) : undefined });
    }
  }
  const program = { begin, end, rules, functions };
  if (parsed.size >= KEPT) parsed.delete(parsed.keys().next().value!);
  parsed.set(text, program);
  return program;
}

function skipEnds(reader: Reader): void {
  while (peek(reader).type === "newline" || isOperator(reader, ";")) reader.at += 1;
}

function block(reader: Reader): Statement {
  skipLines(reader);
  need(reader, "{");
  const body: Statement[] = [];
  for (skipEnds(reader); !accept(reader, "}"); skipEnds(reader)) {
    if (peek(reader).type === "end") fail(reader);
    body.push(statement(reader));
  }
  return { type: "block", body };
}

/** The end of a simple statement; a closing brace is left. */
function ended(reader: Reader): void {
  const token = peek(reader);
  if (token.type === "newline" || isOperator(reader, ";")) reader.at += 1;
  else if (!isOperator(reader, "}") && !isOperator(reader, "else") && token.type !== "end")
    fail(reader);
}

function body(reader: Reader): Statement {
  skipLines(reader);
  if (accept(reader, ";")) return { type: "block", body: [] };
  return statement(reader);
}

function statement(reader: Reader): Statement {
  return nested(reader, (): Statement => {
    if (isOperator(reader, "{")) return block(reader);
    const token = peek(reader);
    if (token.type !== "word") {
      const simple = simpleStatement(reader);
      ended(reader);
      return simple;
    }
    switch (token.text) {
      case "if": {
        reader.at += 1;
        const condition = inParentheses(reader);
        const yes = body(reader);
        const back = reader.at;
        skipEnds(reader);
        if (accept(reader, "else")) return { type: "if", condition, yes, no: body(reader) };
        reader.at = back;
        return { type: "if", condition, yes, no: undefined };
      }
      case "while": {
        reader.at += 1;
        const condition = inParentheses(reader);
        return { type: "while", condition, body: body(reader), first: false };
      }
      case "do": {
        reader.at += 1;
        const inside = body(reader);
        skipEnds(reader);
        need(reader, "while");
        const condition = inParentheses(reader);
        ended(reader);
        return { type: "while", condition, body: inside, first: true };
      }
      case "for":
        reader.at += 1;
        return readFor(reader);
      case "break":
      case "continue":
      case "next":
      case "nextfile":
        reader.at += 1;
        ended(reader);
        return { type: "jump", kind: token.text };
      case "exit":
      case "return": {
        reader.at += 1;
        const isBare =
          peek(reader).type === "newline" || isOperator(reader, ";") || isOperator(reader, "}");
        const value = isBare ? undefined : expression(reader);
        ended(reader);
        return { type: token.text, value };
      }
      default: {
        const simple = simpleStatement(reader);
        ended(reader);
        return simple;
      }
    }
  });
}

function inParentheses(reader: Reader): Expression {
  need(reader, "(");
  const inside = expression(reader);
  need(reader, ")");
  return inside;
}

function readFor(reader: Reader): Statement {
  need(reader, "(");
  const [name, word, array, close] = reader.tokens.slice(reader.at, reader.at + 4);
  if (
    name?.type === "name" &&
    word?.text === "in" &&
    array?.type === "name" &&
    close?.text === ")"
  ) {
    reader.at += 4;
    return { type: "each", name: name.text, array: array.text, body: body(reader) };
  }
  const start = isOperator(reader, ";") ? undefined : simpleStatement(reader);
  need(reader, ";");
  skipLines(reader);
  const condition = isOperator(reader, ";") ? undefined : expression(reader);
  need(reader, ";");
  skipLines(reader);
  const step = isOperator(reader, ")") ? undefined : simpleStatement(reader);
  need(reader, ")");
  return { type: "for", start, condition, step, body: body(reader) };
}

function simpleStatement(reader: Reader): Statement {
  if (accept(reader, "delete")) {
    const { text: name } = advance(reader);
    if (!accept(reader, "[")) return { type: "delete", name, indices: undefined };
    return { type: "delete", name, indices: list(reader, "]") };
  }
  const isFormat = isOperator(reader, "printf");
  if (!isFormat && !isOperator(reader, "print"))
    return { type: "expression", value: expression(reader) };
  reader.at += 1;
  const { inPrint } = reader;
  reader.inPrint = true;
  let args: readonly Expression[] = [];
  const isBare = (): boolean =>
    peek(reader).type === "newline" ||
    [";", "}", ">", ">>", "|"].some((one) => isOperator(reader, one));
  if (!isBare()) args = printed(reader);
  let operator: string | undefined;
  let to: Expression | undefined;
  for (const one of [">", ">>", "|"])
    if (operator === undefined && accept(reader, one)) {
      operator = one;
      to = concatenation(reader);
    }
  reader.inPrint = inPrint;
  return { type: "print", format: isFormat, args, operator, to };
}

/** What is printed: a list, perhaps in parentheses. */
function printed(reader: Reader): readonly Expression[] {
  if (isOperator(reader, "(")) {
    const start = reader.at;
    reader.at += 1;
    const { inPrint } = reader;
    reader.inPrint = false;
    const inside = list(reader, ")");
    reader.inPrint = inPrint;
    const after = peek(reader);
    if (
      after.type === "newline" ||
      after.type === "end" ||
      [";", "}", ">", ">>", "|"].some((one) => isOperator(reader, one))
    )
      return inside;
    reader.at = start;
  }
  const args = [expression(reader)];
  while (accept(reader, ",")) {
    skipLines(reader);
    args.push(expression(reader));
  }
  return args;
}
