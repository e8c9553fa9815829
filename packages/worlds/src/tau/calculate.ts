/**
 * The `calculate` tool: Python evaluates the expression, so ints are unbounded, `//` and `**` work,
 * and errors are worded as Python 3.13 words them.
 */
import { floatText } from "@pawl/core/envs/python-text.js";
import { type Numeric, PyError, round2 } from "./value.js";

/** What an expression of digits, operators and parentheses can evaluate to. */
type Result = bigint | number | "complex" | "tuple";

/** Python reads no more parentheses inside one another. */
const MOST_OPEN = 200;

/** An int of more bits than this is refused instead of computed. */
const MOST_BITS = 2_000_000n;

/** `str(round(float(eval(expression)), 2))`, for an expression with permitted characters only. */
export function calculate(expression: string): string {
  const value = evaluate(expression);
  if (typeof value === "string")
    throw new PyError(
      "TypeError",
      `float() argument must be a string or a real number, not '${value}'`,
    );
  return floatText(Number(round2(toFloat(value))));
}

/** Whether an expression has only characters that the tool permits. */
export function isPermitted(character: unknown): boolean {
  return typeof character === "string" && "0123456789+-*/(). ".includes(character);
}

function toFloat(value: Numeric): number {
  const float = Number(value);
  if (typeof value === "bigint" && !Number.isFinite(float))
    throw new PyError("OverflowError", "int too large to convert to float");
  return float;
}

function syntax(message = "invalid syntax", line = 1): PyError {
  return new PyError("SyntaxError", `${message} (<string>, line ${line})`);
}

function evaluate(expression: string): Result {
  const tokens = readTokens(expression);
  if (tokens.length === 0) throw syntax("invalid syntax", 0);
  let at = 0;
  const sum = (): Result => {
    let left = product();
    while (tokens[at] === "+" || tokens[at] === "-") left = apply(tokens[at++]!, left, product());
    return left;
  };
  const product = (): Result => {
    let left = unary();
    while (tokens[at] === "*" || tokens[at] === "/" || tokens[at] === "//")
      left = apply(tokens[at++]!, left, unary());
    return left;
  };
  const unary = (): Result => {
    const signs: string[] = [];
    while (tokens[at] === "+" || tokens[at] === "-") signs.push(tokens[at++]!);
    const value = power();
    if (value === "tuple" && signs.length > 0)
      throw new PyError("TypeError", `bad operand type for unary ${signs.at(-1)}: 'tuple'`);
    const minus = signs.filter((sign) => sign === "-").length % 2 === 1;
    return minus && value !== "complex" && value !== "tuple" ? -value : value;
  };
  const power = (): Result => {
    const base = call();
    if (tokens[at] !== "**") return base;
    at++;
    return apply("**", base, unary());
  };
  const call = (): Result => {
    const value = atom();
    if (tokens[at] !== "(") return value;
    // The arguments are parsed first: what is wrong with them comes before the call itself.
    atom();
    const type =
      value === "tuple" || value === "complex"
        ? value
        : typeof value === "bigint"
          ? "int"
          : "float";
    throw new PyError("TypeError", `'${type}' object is not callable`);
  };
  const atom = (): Result => {
    const token = tokens[at++];
    if (token === "(") {
      if (tokens[at] === ")") {
        at++;
        return "tuple";
      }
      const value = sum();
      if (tokens[at++] !== ")") throw syntax();
      return value;
    }
    if (token === undefined || !/\d/.test(token)) throw syntax();
    return token.includes(".") ? Number(token) : BigInt(token);
  };
  const value = sum();
  if (at < tokens.length) throw syntax();
  return value;
}

/** The tokens; parentheses that do not match and odd numbers are found here, as in Python. */
function readTokens(expression: string): readonly string[] {
  const tokens: string[] = [];
  let open = 0;
  for (const [token] of expression.matchAll(/\d+\.?\d*|\.\d+|\*\*|\/\/|[-+*/().]/g)) {
    if (/^0[0-9]*[1-9]/.test(token) && !token.includes("."))
      throw syntax(
        "leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers",
      );
    if (token === "(" && ++open > MOST_OPEN) throw syntax("too many nested parentheses");
    if (token === ")" && --open < 0) throw syntax("unmatched ')'");
    tokens.push(token);
  }
  if (open > 0) throw syntax("'(' was never closed");
  return tokens;
}

function apply(operator: string, a: Result, b: Result): Result {
  if (a === "tuple" || b === "tuple")
    throw new PyError("TypeError", `unsupported operand type(s) for ${operator}: 'tuple'`);
  if (a === "complex" || b === "complex") return "complex";
  if (operator === "**") return raise(a, b);
  if (operator === "/") return divide(a, b);
  if (operator === "//") return floorDivide(a, b);
  if (typeof a === "bigint" && typeof b === "bigint")
    return operator === "+" ? a + b : operator === "-" ? a - b : a * b;
  const [x, y] = [toFloat(a), toFloat(b)];
  return operator === "+" ? x + y : operator === "-" ? x - y : x * y;
}

function divide(a: bigint | number, b: bigint | number): number {
  const ints = typeof a === "bigint" && typeof b === "bigint";
  if (Number(b) === 0)
    throw new PyError("ZeroDivisionError", ints ? "division by zero" : "float division by zero");
  return toFloat(a) / toFloat(b);
}

function floorDivide(a: bigint | number, b: bigint | number): bigint | number {
  if (typeof a === "bigint" && typeof b === "bigint") {
    if (b === 0n) throw new PyError("ZeroDivisionError", "integer division or modulo by zero");
    const quotient = a / b;
    return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
  }
  const [x, y] = [toFloat(a), toFloat(b)];
  if (y === 0) throw new PyError("ZeroDivisionError", "float floor division by zero");
  let rest = x % y;
  let quotient = (x - rest) / y;
  if (rest !== 0 && y < 0 !== rest < 0) {
    rest += y;
    quotient -= 1;
  }
  if (quotient === 0) return Object.is(x / y, -0) || x / y < 0 ? -0 : 0;
  const floor = Math.floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

function raise(base: bigint | number, exponent: bigint | number): Result {
  if (typeof base === "bigint" && typeof exponent === "bigint" && exponent >= 0n) {
    const bits = BigInt((base < 0n ? -base : base).toString(2).length);
    if (bits > 1n && bits * exponent > MOST_BITS)
      throw new PyError("OverflowError", "int too large to convert to float");
    return base ** exponent;
  }
  const [x, y] = [toFloat(base), toFloat(exponent)];
  if (x === 0 && y < 0)
    throw new PyError("ZeroDivisionError", "0.0 cannot be raised to a negative power");
  if (x < 0 && !Number.isInteger(y)) return "complex";
  const value = x ** y;
  if (!Number.isFinite(value) && Number.isFinite(x) && Number.isFinite(y))
    throw new PyError("OverflowError", "(34, 'Numerical result out of range')");
  return value;
}
