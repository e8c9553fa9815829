/** The functions that `awk` has of its own. */
import { createRandom } from "@pawl/core/random.js";
import { spend } from "../shell/machine.js";
import type { Matcher } from "../shell/regex.js";
import { close, closeAll } from "./awk-files.js";
import { type Awk, numberOf, splitText, textOf, type Value, valueFrom } from "./awk-values.js";
import { Failure } from "./call.js";
import { dateText } from "./date.js";
import { floatText } from "./print.js";

/** What a function is given. */
interface Arguments {
  readonly count: number;
  value(n: number): Value;
  isArray(n: number): boolean;
  array(n: number): Map<string, Value>;
  pattern(n: number): Matcher;
  assign(n: number, value: Value): void;
  run(command: string): number;
}

const LONGEST = 2 ** 20;

export function builtinAwk(state: Awk, name: string, args: Arguments): Value {
  const text = (n: number): string => textOf(state, args.value(n));
  const number = (n: number): number => numberOf(args.value(n));
  switch (name) {
    case "length":
      if (args.count === 0) return state.line.length;
      return args.isArray(0) ? args.array(0).size : text(0).length;
    case "substr": {
      const whole = text(0);
      const from = Math.round(number(1));
      const to = args.count > 2 ? from + Math.round(number(2)) : Number.POSITIVE_INFINITY;
      return whole.slice(Math.max(0, from - 1), Math.max(0, to - 1));
    }
    case "index":
      return text(0).indexOf(text(1)) + 1;
    case "split": {
      const whole = text(0);
      const array = args.array(1);
      const separator =
        args.count > 2 ? separatorOf(args) : textOf(state, state.variables.get("FS"));
      const parts =
        typeof separator === "string" ? splitText(whole, separator) : splitBy(whole, separator);
      array.clear();
      parts.forEach((part, n) => {
        array.set(String(n + 1), valueFrom(part));
      });
      return parts.length;
    }
    case "sub":
    case "gsub":
      return substitute(state, args, name === "gsub");
    case "match": {
      const found = args.pattern(1).exec(text(0));
      state.variables.set("RSTART", found === null ? 0 : found.index + 1);
      state.variables.set("RLENGTH", found === null ? -1 : found[0].length);
      return found === null ? 0 : found.index + 1;
    }
    case "sprintf":
      return formatAwk(
        state,
        text(0),
        Array.from({ length: Math.max(0, args.count - 1) }, (_, n) => args.value(n + 1)),
      );
    case "toupper":
      return text(0).replace(/[a-z]/g, (one) => one.toUpperCase());
    case "tolower":
      return text(0).replace(/[A-Z]/g, (one) => one.toLowerCase());
    case "int":
      return Math.trunc(number(0));
    case "sqrt":
      return Math.sqrt(number(0));
    case "exp":
      return Math.exp(number(0));
    case "log":
      return Math.log(number(0));
    case "sin":
      return Math.sin(number(0));
    case "cos":
      return Math.cos(number(0));
    case "atan2":
      return Math.atan2(number(0), number(1));
    case "rand":
      return state.random.next();
    case "srand":
      state.random = createRandom(
        args.count > 0 ? number(0) : Math.floor(state.call.shell.machine.time / 1000),
      );
      return 0;
    case "system":
      return args.run(text(0));
    case "close":
      return close(state, text(0));
    case "fflush":
      closeAll(state);
      return 0;
    case "systime":
      return Math.floor(state.call.shell.machine.time / 1000);
    case "strftime":
      return dateText(
        (args.count > 1 ? number(1) : Math.floor(state.call.shell.machine.time / 1000)) * 1000,
        args.count > 0 ? text(0) : "%c",
      );
    default:
      throw new Failure(`function ${name} never defined`, 2);
  }

  function separatorOf(given: Arguments): string | Matcher {
    const plain = text(2);
    return plain.length === 1 || plain === "" ? plain : given.pattern(2);
  }
}

function splitBy(text: string, matcher: Matcher): string[] {
  const parts: string[] = [];
  let from = 0;
  for (let at = 0; at <= text.length; ) {
    const found = matcher.exec(text, at);
    if (found === null) break;
    at = found.index + Math.max(1, found[0].length);
    if (found[0] === "") continue;
    parts.push(text.slice(from, found.index));
    from = at;
  }
  return text === "" ? [] : [...parts, text.slice(from)];
}

function substitute(state: Awk, args: Arguments, all: boolean): number {
  const matcher = args.pattern(0);
  const fresh = textOf(state, args.value(1));
  const whole = args.count > 2 ? textOf(state, args.value(2)) : state.line;
  let result = "";
  let at = 0;
  let from = 0;
  let count = 0;
  while (from <= whole.length) {
    const found = matcher.exec(whole, from);
    if (found === null) break;
    const end = found.index + found[0].length;
    const isRepeated = found[0] === "" && count > 0 && found.index === at && at > 0 && from === at;
    if (!isRepeated || whole[at - 1] === undefined) {
      result +=
        whole.slice(at, found.index) +
        fresh.replace(/\\\\|\\&|&/g, (one) =>
          one === "&" ? found[0] : one === "\\&" ? "&" : "\\",
        );
      count += 1;
      at = end;
    }
    from = found[0] === "" ? end + 1 : end;
    spend(state.call.shell.machine, 0.3);
    if (result.length > LONGEST) throw new Failure("a string is too long", 2);
    if (!all) break;
  }
  if (count > 0) args.assign(2, result + whole.slice(at));
  return count;
}

/** `sprintf`. */
export function formatAwk(state: Awk, format: string, args: readonly Value[]): string {
  const left = [...args];
  return format.replace(
    /%(?:%|([-+ 0#]*)(\*|\d+)?(?:\.(\*|\d+)?)?([a-zA-Z]))/g,
    (
      all,
      flags: string | undefined,
      wide: string | undefined,
      precise: string | undefined,
      kind: string | undefined,
    ) => {
      if (all === "%%") return "%";
      const width = Math.min(
        1000,
        Math.abs(wide === "*" ? numberOf(left.shift()) : Number(wide ?? 0)),
      );
      const precision = all.includes(".")
        ? Math.min(1000, precise === "*" ? numberOf(left.shift()) : Number(precise ?? 0))
        : undefined;
      const value = left.shift();
      let body: string;
      if (kind === "d" || kind === "i")
        body = Math.trunc(numberOf(value))
          .toLocaleString("en-US", { useGrouping: false })
          .padStart(precision ?? 0, "0");
      else if (kind === "c")
        body =
          typeof value === "number"
            ? String.fromCharCode(value & 255)
            : textOf(state, value).slice(0, 1);
      else if (kind === "s") body = textOf(state, value).slice(0, precision);
      else if (kind === "x" || kind === "X" || kind === "o" || kind === "u") {
        body = Math.trunc(numberOf(value)).toString(kind === "o" ? 8 : kind === "u" ? 10 : 16);
        if (kind === "X") body = body.toUpperCase();
      } else if (/[eEfFgG]/.test(kind!)) body = floatText(kind!, numberOf(value), precision, flags);
      else return all;
      if (kind !== "s" && kind !== "c" && !body.startsWith("-"))
        body = (flags!.includes("+") ? "+" : flags!.includes(" ") ? " " : "") + body;
      if (flags!.includes("-")) return body.padEnd(width);
      if (!flags!.includes("0") || kind === "s") return body.padStart(width);
      const sign = /^[-+ ]?/.exec(body)![0];
      return sign + body.slice(sign.length).padStart(width - sign.length, "0");
    },
  );
}
