/** Commands that print, and the `test` command. */
import { askOne, askTwo } from "../shell/conditions.js";
import { Stopped } from "../shell/machine.js";
import { type Call, type Shell, setVariable } from "../shell/shell.js";
import { write } from "../shell/streams.js";
import { UNARY } from "../shell/test-parser.js";

/** Writes to one of the shell's streams. */
export function print(shell: Shell, text: string, fd = 1): void {
  const stream = shell.streams.get(fd);
  if (stream !== undefined) write(shell.machine, stream, text);
}

const ESCAPES = new Map([
  ["n", "\n"],
  ["t", "\t"],
  ["r", "\r"],
  ["a", "\x07"],
  ["b", "\b"],
  ["e", "\x1b"],
  ["f", "\f"],
  ["v", "\v"],
  ["\\", "\\"],
]);

/** A text with its escapes carried out, and whether `\c` ended it. */
function unescaped(
  text: string,
  isEcho: boolean,
): { readonly text: string; readonly ends: boolean } {
  const octal = isEcho ? "0[0-7]{1,3}" : "[0-7]{1,3}";
  const pattern = new RegExp(`\\\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|${octal}|[^])`, "g");
  let ends = false;
  let result = "";
  let at = 0;
  for (const found of text.matchAll(pattern)) {
    result += text.slice(at, found.index);
    at = found.index + found[0].length;
    const code = found[1]!;
    if (code === "c") {
      ends = true;
      break;
    }
    if (/^x./.test(code)) result += String.fromCharCode(Number.parseInt(code.slice(1), 16));
    else if (/^u./.test(code))
      result += Buffer.from(String.fromCharCode(Number.parseInt(code.slice(1), 16))).toString(
        "latin1",
      );
    else if (/^[0-7]/.test(code)) result += String.fromCharCode(Number.parseInt(code, 8) & 255);
    else result += ESCAPES.get(code) ?? (!isEcho && `"'`.includes(code) ? code : found[0]);
  }
  return { text: ends ? result : result + text.slice(at), ends };
}

/** `echo`. */
export function echo({ shell, args }: Call): number {
  let at = 0;
  let hasEnd = true;
  let isEscaped = false;
  for (; at < args.length && /^-[neE]+$/.test(args[at]!); at++)
    for (const letter of args[at]!.slice(1)) {
      if (letter === "n") hasEnd = false;
      else isEscaped = letter === "e";
    }
  const plain = args.slice(at).join(" ");
  const { text, ends } = isEscaped ? unescaped(plain, true) : { text: plain, ends: false };
  print(shell, hasEnd && !ends ? `${text}\n` : text);
  return 0;
}

const DIRECTIVE =
  /%(?:%|([-+ 0#']*)(\*|\d+)?(?:\.(\*|-?\d+)?)?(?:h|hh|l|ll|L|j|z|t)?([diouxXcsbqeEfFgGaA]|\(.*?\)T))/g;
const WIDEST = 2 ** 20;
const MOST_DIGITS = 10_000;

/** `printf`. */
export function printf(call: Call): number {
  const { shell } = call;
  const args = [...call.args];
  let variable: string | undefined;
  if (args[0] === "-v") [, variable] = args.splice(0, 2);
  if (args[0] === "--") args.shift();
  const format = args.shift();
  if (format === undefined) {
    print(shell, "printf: usage: printf [-v var] format [arguments]\n", 2);
    return 2;
  }
  const state: FormatState = { shell, name: call.name, args, status: 0, ends: false };
  let text = "";
  do {
    const left = args.length;
    text += formatted(format, state);
    if (left === args.length) break;
  } while (args.length > 0 && !state.ends && text.length < 2 ** 20);
  if (variable === undefined) print(shell, text);
  else setVariable(shell, variable, text);
  return state.status;
}

interface FormatState {
  readonly shell: Shell;
  readonly name: string;
  readonly args: string[];
  status: number;
  ends: boolean;
}

function formatted(format: string, state: FormatState): string {
  let result = "";
  let at = 0;
  const literal = (text: string): void => {
    const { text: plain, ends } = unescaped(text, false);
    result += plain;
    state.ends ||= ends;
  };
  for (const found of format.matchAll(DIRECTIVE)) {
    literal(format.slice(at, found.index));
    if (state.ends) return result;
    at = found.index + found[0].length;
    result += found[0] === "%%" ? "%" : directive(found, state);
    if (state.ends) return result;
  }
  literal(format.slice(at));
  return result;
}

function directive(found: RegExpExecArray, state: FormatState): string {
  const [, flags = "", wide, precise, kind = "s"] = found as unknown as string[];
  const asked = (text: string | undefined): number | undefined =>
    text === undefined ? undefined : text === "*" ? Number(state.args.shift() ?? 0) : Number(text);
  let width = asked(wide) ?? 0;
  let left = flags.includes("-");
  if (width < 0) {
    left = true;
    width = -width;
  }
  if (width > WIDEST) throw new Stopped("it wrote too much");
  const hasPrecision = found[0].includes(".");
  const precision = hasPrecision ? Math.min(asked(precise) ?? 0, MOST_DIGITS) : undefined;
  const argument = state.args.shift();
  const body = bodyOf(kind, argument ?? "", precision, flags, state);
  if (body.length >= width) return body;
  if (left) return body.padEnd(width);
  const isNumber = /[diouxXeEfFgG]/.test(kind);
  if (!flags.includes("0") || !isNumber || (precision !== undefined && /[diouxX]/.test(kind)))
    return body.padStart(width);
  const sign = /^([-+ ]|0[xX])?/.exec(body)![0];
  return sign + body.slice(sign.length).padStart(width - sign.length, "0");
}

function bodyOf(
  kind: string,
  argument: string,
  precision: number | undefined,
  flags: string,
  state: FormatState,
): string {
  if (kind === "s") return precision === undefined ? argument : argument.slice(0, precision);
  if (kind === "c") return argument.slice(0, 1);
  if (kind === "b") {
    const { text, ends } = unescaped(argument, true);
    state.ends ||= ends;
    return precision === undefined ? text : text.slice(0, precision);
  }
  if (kind === "q")
    return /^[\w./:=+,@%-]+$/.test(argument)
      ? argument
      : argument === ""
        ? "''"
        : argument.replace(/[^\w./:=+,@%-]/g, "\\$&");
  if (kind.startsWith("(")) return new Date(state.shell.machine.time).toISOString().slice(0, 10);
  const value = numberOf(argument, state);
  if (/[eEfFgGaA]/.test(kind))
    return signed(floatText(kind, Number(value), precision, flags), flags);
  const integer = typeof value === "bigint" ? value : BigInt(Math.trunc(value));
  return signed(integerText(kind, integer, precision, flags), flags);
}

const signed = (text: string, flags: string): string =>
  text.startsWith("-")
    ? text
    : flags.includes("+")
      ? `+${text}`
      : flags.includes(" ")
        ? ` ${text}`
        : text;

function integerText(
  kind: string,
  value: bigint,
  precision: number | undefined,
  flags: string,
): string {
  const base = kind === "o" ? 8 : /[xX]/.test(kind) ? 16 : 10;
  const shown = base === 10 && kind !== "u" ? value : BigInt.asUintN(64, value);
  let digits = (shown < 0n ? -shown : shown).toString(base).padStart(precision ?? 0, "0");
  if (flags.includes("#") && base === 16 && value !== 0n) digits = `0x${digits}`;
  if (flags.includes("#") && base === 8) digits = `0${digits}`;
  const text = shown < 0n ? `-${digits}` : digits;
  return kind === "X" ? text.toUpperCase() : text;
}

/** A number with a fraction, as C prints it. */
export function floatText(
  kind: string,
  value: number,
  precision: number | undefined,
  flags = "",
): string {
  const lower = kind.toLowerCase();
  let text: string;
  if (!Number.isFinite(value)) text = Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
  else if (lower === "f") text = fixed(value, Math.min(precision ?? 6, 100));
  else if (lower === "e") text = exponent(value.toExponential(Math.min(precision ?? 6, 100)));
  else {
    const digits = Math.min(Math.max(precision ?? 6, 1), 100);
    const power = value === 0 ? 0 : Number(value.toExponential(digits - 1).split("e")[1]);
    text =
      power < -4 || power >= digits
        ? exponent(value.toExponential(digits - 1))
        : fixed(value, digits - 1 - power);
    if (!flags.includes("#") && text.includes(".")) text = text.replace(/\.?0+(?=e|$)/, "");
  }
  if (Object.is(value, -0) && !text.startsWith("-")) text = `-${text}`;
  return kind === lower ? text : text.toUpperCase();
}

/** toFixed writes large numbers with an exponent, and rounds as C does otherwise. */
const fixed = (value: number, digits: number): string =>
  Math.abs(value) < 1e21
    ? value.toFixed(digits)
    : BigInt(value) + (digits > 0 ? `.${"0".repeat(digits)}` : "");

const exponent = (text: string): string => text.replace(/e([-+])(\d)$/, "e$10$2");

function numberOf(argument: string, state: FormatState): number | bigint {
  const text = argument.trimStart();
  if (text === "") return 0n;
  if (/^["']/.test(text)) return BigInt(text.charCodeAt(1) || 0);
  if (/^[-+]?(0[xX][0-9a-fA-F]+|\d+)$/.test(text)) {
    const digits = text.replace(/^[-+]/, "");
    const value = BigInt(
      /^0\d/.test(digits) ? (/[89]/.test(digits) ? 0 : `0o${digits.slice(1)}`) : digits,
    );
    return text.startsWith("-") ? -value : value;
  }
  const number = Number.parseFloat(text);
  if (!/^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(text)) {
    print(state.shell, `${state.name}: ${argument}: invalid number\n`, 2);
    state.status = 1;
  }
  return Number.isNaN(number) ? 0n : number;
}

/** `test` and `[`. */
export function testCommand({ shell, name, args }: Call): number {
  const words = [...args];
  const refuse = (message: string): number => {
    print(shell, `${shell.name}: line ${shell.line}: ${name}: ${message}\n`, 2);
    return 2;
  };
  if (name === "[" && words.pop() !== "]") return refuse("missing `]'");
  try {
    const test = { shell, words, at: 0 };
    const answer = words.length === 0 ? false : either(test);
    if (test.at < words.length)
      return refuse(
        words.length > 3 ? "too many arguments" : `${words[test.at - 1]}: binary operator expected`,
      );
    return answer ? 0 : 1;
  } catch (error) {
    if (error instanceof TestMistake) return refuse(error.message);
    throw error;
  }
}

class TestMistake {
  constructor(readonly message: string) {}
}

interface Test {
  readonly shell: Shell;
  readonly words: readonly string[];
  at: number;
}

function either(test: Test): boolean {
  let value = both(test);
  while (test.words[test.at] === "-o") {
    test.at += 1;
    const right = both(test);
    value ||= right;
  }
  return value;
}

function both(test: Test): boolean {
  let value = one(test);
  while (test.words[test.at] === "-a") {
    test.at += 1;
    const right = one(test);
    value &&= right;
  }
  return value;
}

const integer = (text: string): bigint => {
  if (!/^\s*[-+]?\d+\s*$/.test(text)) throw new TestMistake(`${text}: integer expression expected`);
  return BigInt(text.trim().replace(/^\+/, ""));
};

function one(test: Test): boolean {
  const { shell, words } = test;
  const left = words[test.at];
  if (left === undefined) throw new TestMistake("argument expected");
  const rest = words.length - test.at;
  const operator = words[test.at + 1];
  if (rest >= 3) {
    const answer = askTwo(shell, operator!, left, words[test.at + 2]!, integer);
    if (answer !== undefined) {
      test.at += 3;
      return answer;
    }
  }
  if (left === "!" && rest > 1) {
    test.at += 1;
    return !one(test);
  }
  if (left === "(" && rest > 2) {
    test.at += 1;
    const inside = either(test);
    if (words[test.at] !== ")") throw new TestMistake("`)' expected");
    test.at += 1;
    return inside;
  }
  if (rest > 1 && UNARY.test(left) && operator !== "-a" && operator !== "-o") {
    test.at += 2;
    return askOne(shell, left, operator!);
  }
  if (rest === 2 && words.length === 2 && left.startsWith("-"))
    throw new TestMistake(`${left}: unary operator expected`);
  test.at += 1;
  return left !== "";
}
