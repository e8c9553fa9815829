/**
 * Regular expressions of schemas, as texts inside a JSON string. Groups, classes, counts, and
 * anchors and lookaheads at the ends are read; what needs memory (backreferences) or looks around
 * in the middle is refused.
 */
import { automatonOf, ConstraintError, combined } from "./automaton.js";
import {
  type Automaton,
  type CodePoints,
  choice,
  type Expression,
  LAST_CODE_POINT,
  nothing,
  repeat,
  sequence,
} from "./expression.js";
import { plainCharacter, writtenCharacter } from "./json-text.js";

/** All texts, each in one spelling. */
const everything = repeat(writtenCharacter([[0, LAST_CODE_POINT]]));

/** The strings that a pattern is found in, without quotation marks; undefined if there is none. */
export function patternStrings(pattern: string): Automaton | undefined {
  const { options, conditions } = readPattern(pattern);
  let strings = automatonOf(choice(...options));
  for (const { expression, wanted } of conditions) {
    const ahead = automatonOf(sequence(expression, everything));
    if (strings === undefined || ahead === undefined) return wanted ? undefined : strings;
    strings = combined(strings, ahead, wanted ? "both" : "first only");
  }
  return strings;
}

interface Condition {
  readonly expression: Expression;
  readonly wanted: boolean;
}

const DIGITS: readonly CodePoints[] = [[0x30, 0x39]];
const WORD: readonly CodePoints[] = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
];
const SPACE: readonly CodePoints[] = [
  [9, 13],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
const LINE_ENDS: readonly CodePoints[] = [
  [10, 10],
  [13, 13],
  [0x2028, 0x2029],
];
const CLASSES: Readonly<Record<string, readonly CodePoints[]>> = {
  d: DIGITS,
  w: WORD,
  s: SPACE,
  D: complement(DIGITS),
  W: complement(WORD),
  S: complement(SPACE),
};
const CONTROLS: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11, 0: 0 };
/** Copies of a part that `{n,m}` asks for, at most. */
const MOST_COPIES = 2000;

function complement(ranges: readonly CodePoints[]): readonly CodePoints[] {
  const rest: CodePoints[] = [];
  let from = 0;
  for (const [first, last] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (first > from) rest.push([from, first - 1]);
    from = Math.max(from, last + 1);
  }
  if (from <= LAST_CODE_POINT) rest.push([from, LAST_CODE_POINT]);
  return rest;
}

/** The alternatives of a whole pattern, and what must or must not stand at the beginning. */
function readPattern(pattern: string): {
  readonly options: readonly Expression[];
  readonly conditions: readonly Condition[];
} {
  const text = Array.from(pattern);
  let at = 0;
  const refuse = (what: string): never => {
    throw new ConstraintError(
      `the pattern ${JSON.stringify(pattern)} has ${what}, which cannot be kept to while sampling`,
    );
  };
  const takes = (token: string): boolean => {
    if (text.slice(at, at + token.length).join("") !== token) return false;
    at += token.length;
    return true;
  };

  const alternatives = (): Expression => {
    const options = [alternative()];
    while (takes("|")) options.push(alternative());
    return options.length === 1 ? options[0]! : choice(...options);
  };
  const alternative = (): Expression => {
    const parts: Expression[] = [];
    while (at < text.length && text[at] !== "|" && text[at] !== ")" && !isFinalAnchor())
      parts.push(counted(atom()));
    return sequence(...parts);
  };
  const isFinalAnchor = (): boolean =>
    text[at] === "$" && depth === 0 && (at + 1 === text.length || text[at + 1] === "|");
  let depth = 0;

  const group = (): Expression => {
    depth++;
    const inside = alternatives();
    depth--;
    if (!takes(")")) refuse("a group that is not closed");
    return inside;
  };
  const atom = (): Expression => {
    if (takes("(?:")) return group();
    if (/^\(\?<[^=!]/.test(text.slice(at, at + 4).join(""))) {
      while (at < text.length && text[at] !== ">") at++;
      at++;
      return group();
    }
    if (text[at] === "(" && text[at + 1] === "?") return refuse("a lookaround");
    if (takes("(")) return group();
    if (takes("[")) return writtenCharacter(classed());
    if (takes(".")) return writtenCharacter(complement(LINE_ENDS));
    if (text[at] === "^" || text[at] === "$") return refuse("an anchor inside");
    if ("*+?{".includes(text[at]!)) return refuse(`${text[at]} with nothing before it`);
    if (takes("\\")) return writtenCharacter(escaped());
    const point = text[at++]!.codePointAt(0)!;
    return writtenCharacter([[point, point]]);
  };
  const escaped = (): readonly CodePoints[] => {
    const name = text[at++];
    if (name === undefined) return refuse("a lone backslash at its end");
    const known = CLASSES[name];
    if (known !== undefined) return known;
    if (name === "x" || name === "u") {
      const braced = name === "u" && takes("{");
      const begin = at;
      const length = braced ? text.indexOf("}", at) - at : name === "x" ? 2 : 4;
      at += length + (braced ? 1 : 0);
      const point = Number.parseInt(text.slice(begin, begin + length).join(""), 16);
      if (!(point >= 0 && point <= LAST_CODE_POINT)) return refuse(`the escape \\${name}`);
      return [[point, point]];
    }
    if (name !== "0" && /[0-9A-Za-z]/.test(name) && !(name in CONTROLS))
      return refuse(`the escape \\${name}`);
    const point = CONTROLS[name] ?? name.codePointAt(0)!;
    return [[point, point]];
  };
  const classed = (): readonly CodePoints[] => {
    const negated = takes("^");
    const ranges: CodePoints[] = [];
    const one = (): readonly CodePoints[] => {
      if (takes("\\")) {
        if (takes("b")) return [[8, 8]];
        return escaped();
      }
      const point = text[at++]!.codePointAt(0)!;
      return [[point, point]];
    };
    while (at < text.length && text[at] !== "]") {
      const first = one();
      const isRange = text[at] === "-" && at + 1 < text.length && text[at + 1] !== "]";
      if (!isRange || first.length !== 1 || first[0]![0] !== first[0]![1]) ranges.push(...first);
      else {
        at++;
        const last = one();
        if (last.length !== 1 || last[0]![0] !== last[0]![1]) refuse("a range of classes");
        ranges.push([first[0]![0], last[0]![1]]);
      }
    }
    if (!takes("]")) refuse("a class that is not closed");
    return negated ? complement(ranges) : ranges;
  };
  const counted = (part: Expression): Expression => {
    const [least, most] = counts();
    if (least === 1 && most === 1) return part;
    // Whether as much as possible is taken or as little: the texts are the same.
    takes("?");
    if (Math.max(least, Number.isFinite(most) ? most : 0) > MOST_COPIES)
      refuse(`a count above ${MOST_COPIES}`);
    return repeat(part, least, most);
  };
  const counts = (): readonly [number, number] => {
    if (takes("*")) return [0, Number.POSITIVE_INFINITY];
    if (takes("+")) return [1, Number.POSITIVE_INFINITY];
    if (takes("?")) return [0, 1];
    const braces = /^\{(\d+)(?:(,)(\d*))?\}/.exec(text.slice(at, at + 24).join(""));
    if (braces === null) return text[at] === "{" ? refuse("a { that is no count") : [1, 1];
    at += braces[0].length;
    const least = Number(braces[1]);
    if (braces[2] === undefined) return [least, least];
    return [least, braces[3] === "" ? Number.POSITIVE_INFINITY : Number(braces[3])];
  };

  const conditions: Condition[] = [];
  const options: Expression[] = [];
  do {
    const isFirst = options.length === 0;
    const isAnchored = takes("^");
    for (;;) {
      const wanted = takes("(?=");
      if (!wanted && !takes("(?!")) break;
      if (!isAnchored || !isFirst) refuse("a lookahead that is not at its beginning");
      conditions.push({ expression: group(), wanted });
    }
    const inside = alternative();
    const isEnded = takes("$");
    options.push(
      sequence(isAnchored ? nothing : everything, inside, isEnded ? nothing : everything),
    );
  } while (takes("|"));
  if (at < text.length) refuse(`${text[at]} with nothing before it`);
  if (conditions.length > 0 && options.length > 1) refuse("a lookahead beside alternatives");
  return { options, conditions };
}

/** Strings of so many characters, without quotation marks, each in one spelling. */
export function plainStrings(least: number, most: number): Automaton | undefined {
  return automatonOf(repeat(plainCharacter, least, most));
}

/** Formats that are kept to, as patterns. */
const DATE =
  "\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))";
const TIME = "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?Z";
const BYTE = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const NAME = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,20}[A-Za-z0-9])?";
export const FORMATS: Readonly<Record<string, string>> = {
  date: `^${DATE}$`,
  time: `^${TIME}$`,
  "date-time": `^${DATE}T${TIME}$`,
  email: `^[A-Za-z0-9_-]+(?:\\.[A-Za-z0-9_-]+)*@(?:${NAME}\\.)+[A-Za-z]{2,10}$`,
  uri: `^https?://${NAME}(?:\\.${NAME})*(?:/[A-Za-z0-9._~=&?/-]*)?$`,
  uuid: "^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
  ipv4: `^${BYTE}(?:\\.${BYTE}){3}$`,
};
