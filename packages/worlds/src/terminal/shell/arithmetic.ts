/** Whole numbers of 64 bits, as in `$((…))`. */
import { type Shell, ShellError, setVariable, textOf } from "./shell.js";

const TOKEN =
  /\s*(0[xX][0-9a-fA-F]+|[0-9]+#[0-9a-zA-Z@_]+|[0-9]+|[A-Za-z_][A-Za-z0-9_]*|<<=|>>=|\*\*|\+\+|--|&&|\|\||<<|>>|[<>=!]=|[-+*/%&|^]=|[-+*/%<>=!~&|^?:(),[\]]|\S)/y;

/** How strongly operators bind; the higher the number, the stronger. */
const BINARY = new Map<string, number>(
  [
    ["||"],
    ["&&"],
    ["|"],
    ["^"],
    ["&"],
    ["==", "!="],
    ["<", ">", "<=", ">="],
    ["<<", ">>"],
    ["+", "-"],
    ["*", "/", "%"],
    ["**"],
  ].flatMap((operators, level) => operators.map((operator) => [operator, level + 1] as const)),
);
const ASSIGN = /^(?:[-+*/%&|^]|<<|>>)?=$/;
const DEEPEST = 60;

interface Reader {
  readonly shell: Shell;
  readonly text: string;
  readonly tokens: readonly string[];
  at: number;
  depth: number;
  /** Above 0 where nothing is to be assigned. */
  skips: number;
}

const fit = (value: bigint): bigint => BigInt.asIntN(64, value);

/** The value of an expression whose `$` are already gone. */
export function evaluate(shell: Shell, text: string, depth = 0): bigint {
  const plain = text.trim();
  if (/^-?[1-9]\d{0,14}$|^0$/.test(plain)) return BigInt(plain);
  if (plain === "") return 0n;
  if (depth > DEEPEST)
    throw new ShellError(`${text}: expression recursion level exceeded`, 1, true);
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  for (let found = TOKEN.exec(plain); found !== null; found = TOKEN.exec(plain)) {
    tokens.push(found[1]!);
    if (TOKEN.lastIndex >= plain.length) break;
  }
  const reader: Reader = { shell, text: plain, tokens, at: 0, depth, skips: 0 };
  const value = comma(reader);
  if (reader.at < tokens.length) fail(reader);
  return value;
}

/** The same as a number, for indices and offsets. */
export const evaluateNumber = (shell: Shell, text: string): number => Number(evaluate(shell, text));

function fail(reader: Reader, what = "syntax error: operand expected"): never {
  const rest = reader.tokens.slice(reader.at).join(" ");
  throw new ShellError(`${reader.text}: ${what} (error token is "${rest}")`, 1, true);
}

const next = (reader: Reader): string | undefined => reader.tokens[reader.at];

function accept(reader: Reader, token: string): boolean {
  if (next(reader) !== token) return false;
  reader.at += 1;
  return true;
}

function comma(reader: Reader): bigint {
  let value = choice(reader);
  while (accept(reader, ",")) value = choice(reader);
  return value;
}

/** Reads what is not to be carried out. */
function skipped<T>(reader: Reader, isSkipped: boolean, read: () => T): T {
  if (isSkipped) reader.skips += 1;
  const value = read();
  if (isSkipped) reader.skips -= 1;
  return value;
}

function choice(reader: Reader): bigint {
  reader.depth += 1;
  if (reader.depth > DEEPEST) throw new ShellError("expression recursion level exceeded", 1, true);
  const value = binary(reader, 1);
  let result = value;
  if (accept(reader, "?")) {
    const yes = skipped(reader, value === 0n, () => choice(reader));
    if (!accept(reader, ":")) fail(reader, "`:' expected for conditional expression");
    const no = skipped(reader, value !== 0n, () => choice(reader));
    result = value === 0n ? no : yes;
  }
  reader.depth -= 1;
  return result;
}

function binary(reader: Reader, level: number): bigint {
  let left = unary(reader);
  for (;;) {
    const operator = next(reader);
    const own = operator === undefined ? undefined : BINARY.get(operator);
    if (operator === undefined || own === undefined || own < level) return left;
    reader.at += 1;
    const isDecided = operator === "&&" ? left === 0n : operator === "||" && left !== 0n;
    // ** binds to its right.
    const right = skipped(reader, isDecided, () =>
      binary(reader, operator === "**" ? own : own + 1),
    );
    left = apply(reader, operator, left, right);
  }
}

const flag = (value: boolean): bigint => (value ? 1n : 0n);

function apply(reader: Reader, operator: string, a: bigint, b: bigint): bigint {
  switch (operator) {
    case "+":
      return fit(a + b);
    case "-":
      return fit(a - b);
    case "*":
      return fit(a * b);
    case "/":
    case "%":
      if (b === 0n) {
        if (reader.skips > 0) return 0n;
        throw new ShellError(
          `${reader.text}: division by 0 (error token is "${reader.tokens[reader.at - 1]}")`,
          1,
          true,
        );
      }
      return fit(operator === "/" ? a / b : a % b);
    case "**":
      if (b < 0n) fail(reader, "exponent less than 0");
      return power(a, b);
    case "<<":
      return fit(a << (b & 63n));
    case ">>":
      return a >> (b & 63n);
    case "&":
      return a & b;
    case "|":
      return a | b;
    case "^":
      return a ^ b;
    case "&&":
      return flag(a !== 0n && b !== 0n);
    case "||":
      return flag(a !== 0n || b !== 0n);
    case "==":
      return flag(a === b);
    case "!=":
      return flag(a !== b);
    case "<":
      return flag(a < b);
    case ">":
      return flag(a > b);
    case "<=":
      return flag(a <= b);
    default:
      return flag(a >= b);
  }
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = fit(base);
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left & 1n) result = fit(result * square);
    square = fit(square * square);
  }
  return result;
}

function unary(reader: Reader): bigint {
  const token = next(reader);
  if (token === undefined) fail(reader);
  reader.at += 1;
  if (/^[-+!~]$/.test(token)) {
    reader.depth += 1;
    if (reader.depth > DEEPEST)
      throw new ShellError("expression recursion level exceeded", 1, true);
    const value = unary(reader);
    reader.depth -= 1;
    if (token === "-") return fit(-value);
    if (token === "~") return ~value;
    return token === "!" ? flag(value === 0n) : value;
  }
  if (token === "++" || token === "--") {
    const name = next(reader) ?? "";
    if (!/^[A-Za-z_]/.test(name)) return unary(reader) * (token === "--" ? 1n : 1n);
    reader.at += 1;
    const place = placeOf(reader, name);
    const value = fit(place.get() + (token === "++" ? 1n : -1n));
    place.set(value);
    return value;
  }
  if (token === "(") {
    const value = comma(reader);
    if (!accept(reader, ")")) fail(reader, "missing `)'");
    return value;
  }
  if (/^\d/.test(token)) return literal(reader, token);
  if (!/^[A-Za-z_]/.test(token)) {
    reader.at -= 1;
    fail(reader);
  }
  const place = placeOf(reader, token);
  const after = next(reader) ?? "";
  if (after === "++" || after === "--") {
    reader.at += 1;
    const value = place.get();
    place.set(fit(value + (after === "++" ? 1n : -1n)));
    return value;
  }
  if (!ASSIGN.test(after)) return place.get();
  reader.at += 1;
  const right = choice(reader);
  const value = after === "=" ? right : apply(reader, after.slice(0, -1), place.get(), right);
  place.set(value);
  return value;
}

function literal(reader: Reader, token: string): bigint {
  const [base, digits] = token.split("#");
  if (digits === undefined) {
    if (/^0[xX]/.test(token)) return fit(BigInt(token));
    if (!/^0\d/.test(token)) return fit(BigInt(token));
    if (/[89]/.test(token)) {
      throw new ShellError(
        `${reader.text}: value too great for base (error token is "${token}")`,
        1,
        true,
      );
    }
    return fit(BigInt(`0o${token.slice(1)}`));
  }
  const radix = Number(base);
  if (radix < 2 || radix > 36) fail(reader, "invalid arithmetic base");
  let value = 0n;
  for (const digit of digits.toLowerCase()) {
    const number = Number.parseInt(digit, 36);
    if (!(number < radix))
      throw new ShellError(
        `${reader.text}: value too great for base (error token is "${token}")`,
        1,
        true,
      );
    value = fit(value * BigInt(radix) + BigInt(number));
  }
  return value;
}

interface VariablePlace {
  get(): bigint;
  set(value: bigint): void;
}

function placeOf(reader: Reader, name: string): VariablePlace {
  const { shell } = reader;
  let index: string | undefined;
  if (accept(reader, "[")) {
    const start = reader.at;
    let depth = 0;
    while (next(reader) !== undefined && (depth > 0 || next(reader) !== "]")) {
      if (next(reader) === "[") depth += 1;
      if (next(reader) === "]") depth -= 1;
      reader.at += 1;
    }
    const inside = reader.tokens.slice(start, reader.at).join("");
    if (!accept(reader, "]")) fail(reader);
    index = shell.variables.get(name)?.isMap
      ? inside
      : String(evaluate(shell, inside, reader.depth + 1));
  }
  const text = (): string => {
    const variable = shell.variables.get(name);
    const value =
      index === undefined
        ? textOf(shell, name)
        : variable?.elements === undefined && index === "0"
          ? variable?.value
          : variable?.elements?.get(index);
    if (
      value === undefined &&
      index === undefined &&
      shell.options.has("nounset") &&
      reader.skips === 0
    )
      throw new ShellError(`${name}: unbound variable`, 1, true);
    return value ?? "";
  };
  return {
    get: () => (reader.skips > 0 ? 0n : evaluate(shell, text(), reader.depth + 1)),
    set(value) {
      if (reader.skips > 0) return;
      if (index === undefined) setVariable(shell, name, String(value));
      else {
        const old = shell.variables.get(name);
        const elements = new Map(
          old?.elements ?? (old?.value === undefined ? [] : [["0", old.value]]),
        );
        elements.set(index, String(value));
        shell.variables.set(name, { ...old, value: undefined, elements });
      }
    },
  };
}
