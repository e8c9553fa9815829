/** Reads the conditions of `[[ … ]]`. */
import { ShellSyntaxError, type TestNode, type Word } from "./syntax.js";
import { nested, readParts, readWord, type Scanner, take } from "./word-parser.js";

/** Operators that are asked of one word. */
export const UNARY = /^-[a-hknoprstuvwxzGLNORS]$/;
const BINARY = /(?:==?|!=|=~|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))(?=[\s"'$])/y;

const skip = (scanner: Scanner): void => {
  take(scanner, /(?:\s|\\\n)+/y);
};

function fail(scanner: Scanner): never {
  const found = take(scanner, /[^\s]+/y);
  if (found === undefined)
    throw new ShellSyntaxError("unexpected EOF while looking for `]]'", scanner.line);
  throw new ShellSyntaxError(
    `syntax error in conditional expression near \`${found}'`,
    scanner.line,
  );
}

/** What stands between `[[` and `]]`, and the end. */
export function readTest(scanner: Scanner): TestNode {
  const test = either(scanner);
  skip(scanner);
  if (take(scanner, /\]\](?=[\s;&|)<>]|$)/y) === undefined) fail(scanner);
  return test;
}

function either(scanner: Scanner): TestNode {
  let left = both(scanner);
  for (skip(scanner); take(scanner, /\|\|/y) !== undefined; skip(scanner))
    left = { type: "or", left, right: both(scanner) };
  return left;
}

function both(scanner: Scanner): TestNode {
  let left = one(scanner);
  for (skip(scanner); take(scanner, /&&/y) !== undefined; skip(scanner))
    left = { type: "and", left, right: one(scanner) };
  return left;
}

function one(scanner: Scanner): TestNode {
  return nested(scanner, () => {
    skip(scanner);
    if (take(scanner, /!(?=\s)/y) !== undefined) return { type: "not", operand: one(scanner) };
    if (take(scanner, /\(/y) !== undefined) {
      const inside = either(scanner);
      skip(scanner);
      if (take(scanner, /\)/y) === undefined) fail(scanner);
      return inside;
    }
    const unary = take(scanner, /-[a-zA-Z](?=\s+[^\s=!&|\])<>-])/y);
    if (unary !== undefined && UNARY.test(unary)) {
      skip(scanner);
      return { type: "unary", operator: unary, operand: need(scanner) };
    }
    const left = need(scanner);
    skip(scanner);
    const operator = take(scanner, BINARY);
    if (operator === undefined) return { type: "unary", operator: "-n", operand: left };
    skip(scanner);
    const right = operator === "=~" ? expression(scanner) : need(scanner);
    return { type: "binary", operator: operator === "=" ? "==" : operator, left, right };
  });
}

function need(scanner: Scanner): Word {
  const start = scanner.at;
  const word = readWord(scanner);
  const text = scanner.text.slice(start, scanner.at);
  return word.length === 0 || text === "]]" ? fail(scanner) : word;
}

/** A regular expression, whose parentheses and bars are its own. */
function expression(scanner: Scanner): Word {
  let depth = 0;
  return readParts(scanner, "plain", (character) => {
    if (character === "(") depth += 1;
    if (character === ")") {
      depth -= 1;
      return depth < 0;
    }
    return depth === 0 && /[\s;&<>]/.test(character);
  });
}
