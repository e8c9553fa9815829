/** Regular expressions of POSIX, basic and extended with GNU's additions, as JavaScript's. */
import { withinTime } from "@pawl/core/processes/time-limit.js";
import { Stopped } from "./machine.js";

const CLASSES = new Map<string, string>([
  ["alpha", "a-zA-Z"],
  ["digit", "0-9"],
  ["alnum", "a-zA-Z0-9"],
  ["upper", "A-Z"],
  ["lower", "a-z"],
  ["space", " \\t\\n\\r\\f\\v"],
  ["blank", " \\t"],
  ["punct", "!-\\/:-@\\[-`{-~"],
  ["xdigit", "0-9A-Fa-f"],
  ["word", "a-zA-Z0-9_"],
  ["print", " -~"],
  ["graph", "!-~"],
  ["cntrl", "\\x00-\\x1f\\x7f"],
]);

/** A class in brackets as JavaScript's, and where it ends; undefined if it is not closed. */
export function classOf(
  pattern: string,
  start: number,
  isGlob: boolean,
): { readonly source: string; readonly end: number } | undefined {
  let at = start + 1;
  let source = "";
  const negated = pattern[at] === "^" || (isGlob && pattern[at] === "!");
  if (negated) at += 1;
  const first = at;
  for (; ; at++) {
    const character = pattern[at];
    if (character === undefined) return undefined;
    if (character === "]" && at > first) break;
    const named = /^\[:(\w+):\]/.exec(pattern.slice(at, at + 12));
    const collated = /^\[[.=](.)[.=]\]/s.exec(pattern.slice(at, at + 5));
    if (named !== null && CLASSES.has(named[1]!)) {
      source += CLASSES.get(named[1]!);
      at += named[0].length - 1;
    } else if (collated !== null) {
      source += collated[1]!.replace(/[\\\]^-]/, "\\$&");
      at += 4;
    } else if (isGlob && character === "\\" && at + 1 < pattern.length) {
      at += 1;
      source += pattern[at]!.replace(/[\\\]^-]/, "\\$&");
    } else if (character === "-" && at > first && pattern[at + 1] !== "]") {
      source += "-";
    } else source += character.replace(/[\\\]^[-]/, "\\$&");
  }
  if (source === "" && !negated) return undefined;
  return { source: source === "" ? "[^]" : `[${negated ? "^" : ""}${source}]`, end: at + 1 };
}

interface Translation {
  readonly source: string;
  readonly groups: number;
}

const PLAIN = /[\^$\\.*+?()[\]{}|/]/;

/** What a basic or extended expression is in JavaScript; a mistake throws an `Error`. */
function translate(pattern: string, isExtended: boolean): Translation {
  let source = "";
  let groups = 0;
  let open = 0;
  /** Where a star is a star: nothing is before it that it could repeat. */
  let isStart = true;
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at]!;
    const next = pattern[at + 1];
    const isEscape = character === "\\";
    if (isEscape && next === undefined) throw new Error("Trailing backslash");
    if (character === "[") {
      const set = classOf(pattern, at, false);
      if (set === undefined) throw new Error("Unmatched [, [^, [:, [., or [=");
      source += set.source;
      at = set.end - 1;
      isStart = false;
      continue;
    }
    const operator = isExtended ? (isEscape ? "" : character) : isEscape ? next! : "";
    if (isEscape) at += 1;
    const letter = isEscape ? next! : character;
    if (operator === "(") {
      source += "(";
      groups += 1;
      open += 1;
      isStart = true;
    } else if (operator === ")" && (open > 0 || !isExtended)) {
      if (open === 0) throw new Error("Unmatched ) or \\)");
      source += ")";
      open -= 1;
      isStart = false;
    } else if (operator === "|") {
      source += "|";
      isStart = true;
    } else if (operator === "{" && !isStart) {
      const bound = /^(\d*)(?:(,)(\d*))?(\\?)\}/.exec(pattern.slice(at + 1));
      if (bound === null || (bound[4] === "\\") === isExtended) {
        if (!isExtended) throw new Error("Unmatched \\{");
        source += "\\{";
        continue;
      }
      const [all, from, comma, to] = bound;
      if (Number(from) > 32767 || Number(to) > 32767) throw new Error("Regular expression too big");
      source += `{${from || 0}${comma ?? ""}${to ?? ""}}`;
      at += all!.length;
    } else if ((operator === "+" || operator === "?") && !isStart) source += operator;
    else if (letter === "*" && !isEscape) {
      // A star that repeats a repetition adds nothing.
      if (isStart) source += "\\*";
      else if (!/(?<!\\)[*+?]$/.test(source)) source += "*";
    } else if (isEscape && /[1-9]/.test(letter)) {
      if (Number(letter) > groups) throw new Error("Invalid back reference");
      source += `(?:\\${letter})`;
      isStart = false;
    } else if (isEscape && "wWsSbB".includes(letter)) {
      source += `\\${letter}`;
      isStart = false;
    } else if (isEscape && letter === "<") source += "\\b(?=\\w)";
    else if (isEscape && letter === ">") source += "\\b(?<=\\w)";
    else if (isEscape && letter === "`") source += "(?<![^])";
    else if (isEscape && letter === "'") source += "(?![^])";
    else if (isEscape && letter === "n") source += "\\n";
    else if (isEscape && letter === "t") source += "\\t";
    else if (isEscape) {
      source += letter.replace(PLAIN, "\\$&");
      isStart = false;
    } else if (letter === "^") {
      if (isExtended || isStart || source === "") source += "^";
      else source += "\\^";
    } else if (letter === "$") {
      const rest = pattern.slice(at + 1);
      source += isExtended || rest === "" || /^\\[)|]/.test(rest) ? "$" : "\\$";
    } else if (letter === ".") {
      source += ".";
      isStart = false;
    } else {
      source += letter.replace(PLAIN, "\\$&");
      isStart = false;
    }
  }
  if (open > 0) throw new Error("Unmatched ( or \\(");
  return { source, groups };
}

/** A regular expression that is known to end, or is watched. */
export interface Matcher {
  readonly groups: number;
  /** The first match from here on, as of a sticky or global expression. */
  exec(text: string, from?: number): RegExpExecArray | null;
  test(text: string): boolean;
}

const KEPT = 500;
const compiled = new Map<string, Matcher>();
/** Texts below this length are tried without a watch by expressions with one repetition or two. */
const SHORT = 20_000;
const SECONDS = 2;

interface MatcherOptions {
  readonly extended: boolean;
  readonly ignoreCase?: boolean;
  /** Whether `^` and `$` are also lines' ends. */
  readonly lines?: boolean;
  /** For what is already JavaScript's. */
  readonly raw?: boolean;
}

/** Compiles an expression; a mistake throws an `Error`. */
export function matcherOf(pattern: string, options: MatcherOptions): Matcher {
  const { extended, ignoreCase = false, lines = false, raw = false } = options;
  const key = `${extended ? "E" : "B"}${ignoreCase ? "i" : ""}${lines ? "m" : ""}${raw ? "r" : ""}:${pattern}`;
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const { source, groups } = raw ? { source: pattern, groups: 9 } : translate(pattern, extended);
  const flags = `gs${ignoreCase ? "i" : ""}${lines ? "m" : ""}`;
  let expression: RegExp;
  try {
    expression = new RegExp(source, flags);
  } catch {
    throw new Error("Invalid regular expression");
  }
  const matcher = watched(expression, groups);
  if (compiled.size >= KEPT) compiled.delete(compiled.keys().next().value!);
  compiled.set(key, matcher);
  return matcher;
}

function watched(expression: RegExp, groups: number): Matcher {
  const repetitions = expression.source.match(/(?<!\\)(?:[*+]|\{\d+,\})/g)?.length ?? 0;
  const inGroups = /\)(?:[*+?]|\{)/.test(expression.source);
  const isTame = repetitions === 0 || (repetitions < 3 && !inGroups);
  const run = (text: string, from: number): RegExpExecArray | null => {
    expression.lastIndex = from;
    return expression.exec(text);
  };
  const exec = (text: string, from = 0): RegExpExecArray | null => {
    const isQuick = isTame && text.length - from < (repetitions < 2 ? SHORT : SHORT / 10);
    if (repetitions === 0 || isQuick || text.length - from < 16) return run(text, from);
    return withinTime(
      SECONDS * 1000,
      () => run(text, from),
      () => new Stopped("a regular expression took too long") as unknown as Error,
    );
  };
  return { groups, exec, test: (text) => exec(text) !== null };
}
