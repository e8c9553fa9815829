import { matcherOf } from "../shell/regex.js";
import type { Call } from "../shell/shell.js";
import { Failure, out } from "./call.js";

/** `expr`. */
export function expr(call: Call): number {
  const words = call.args;
  let at = 0;
  const next = (): string | undefined => words[at];
  const LEVELS = [
    ["|"],
    ["&"],
    ["=", "==", "!=", "<", "<=", ">", ">="],
    ["+", "-"],
    ["*", "/", "%"],
    [":"],
  ];
  const isTrue = (text: string): boolean => text !== "" && !/^-?0+$/.test(text);
  const whole = (text: string): bigint => {
    if (!/^-?\d+$/.test(text)) throw new Failure("non-integer argument", 2);
    return BigInt(text);
  };
  let depth = 0;
  const read = (level: number): string => {
    depth += 1;
    if (depth > 200) throw new Failure("syntax error", 2);
    if (level === LEVELS.length) {
      const value = basic();
      depth -= 1;
      return value;
    }
    let left = read(level + 1);
    while (next() !== undefined && LEVELS[level]!.includes(next()!)) {
      const operator = words[at++]!;
      left = apply(operator, left, read(level + 1));
    }
    depth -= 1;
    return left;
  };
  const match = (text: string, pattern: string): string => {
    const matcher = matcherOf(`^${pattern.replace(/^\^/, "")}`, { extended: false });
    const found = matcher.exec(text);
    if (matcher.groups > 0) return found?.[1] ?? "";
    return String(found?.[0].length ?? 0);
  };
  const apply = (operator: string, a: string, b: string): string => {
    const numbers = /^-?\d+$/.test(a) && /^-?\d+$/.test(b);
    const order = numbers
      ? BigInt(a) < BigInt(b)
        ? -1
        : BigInt(a) > BigInt(b)
          ? 1
          : 0
      : a < b
        ? -1
        : a > b
          ? 1
          : 0;
    switch (operator) {
      case "|":
        return isTrue(a) ? a : isTrue(b) ? b : "0";
      case "&":
        return isTrue(a) && isTrue(b) ? a : "0";
      case ":":
        return match(a, b);
      case "=":
      case "==":
        return order === 0 ? "1" : "0";
      case "!=":
        return order !== 0 ? "1" : "0";
      case "<":
        return order < 0 ? "1" : "0";
      case "<=":
        return order <= 0 ? "1" : "0";
      case ">":
        return order > 0 ? "1" : "0";
      case ">=":
        return order >= 0 ? "1" : "0";
      default: {
        if ((operator === "/" || operator === "%") && whole(b) === 0n)
          throw new Failure("division by zero", 2);
        const [x, y] = [whole(a), whole(b)];
        return String(
          operator === "+"
            ? x + y
            : operator === "-"
              ? x - y
              : operator === "*"
                ? x * y
                : operator === "/"
                  ? x / y
                  : x % y,
        );
      }
    }
  };
  const basic = (): string => {
    const word = words[at];
    if (word === undefined)
      throw new Failure(`syntax error: missing argument after '${words[at - 1] ?? "expr"}'`, 2);
    at += 1;
    if (word === "(") {
      const value = read(0);
      if (words[at] !== ")") throw new Failure("syntax error: expecting ')'", 2);
      at += 1;
      return value;
    }
    const rest = words.length - at;
    if (word === "length" && rest >= 1) return String(words[at++]!.length);
    if (word === "match" && rest >= 2) return match(words[at++]!, words[at++]!);
    if (word === "index" && rest >= 2) {
      const [text, set] = [words[at++]!, words[at++]!];
      return String([...text].findIndex((one) => set.includes(one)) + 1);
    }
    if (word === "substr" && rest >= 3) {
      const [text, from, count] = [words[at++]!, Number(words[at++]), Number(words[at++])];
      return from > 0 && count > 0 ? text.slice(from - 1, from - 1 + count) : "";
    }
    return word;
  };
  if (words.length === 0) throw new Failure("missing operand", 2);
  const value = read(0);
  if (at < words.length) throw new Failure(`syntax error: unexpected argument '${words[at]}'`, 2);
  out(call, `${value}\n`);
  return isTrue(value) ? 0 : 1;
}
