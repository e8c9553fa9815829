/** Reads the scripts of `sed`. */
import { type Matcher, matcherOf } from "../shell/regex.js";
import { Failure } from "./call.js";

export type Address =
  | { readonly type: "line"; readonly line: number }
  | { readonly type: "last" }
  | { readonly type: "step"; readonly first: number; readonly step: number }
  /** Undefined: the expression that was used last. */
  | { readonly type: "expression"; readonly matcher: Matcher | undefined }
  | { readonly type: "more"; readonly count: number }
  | { readonly type: "multiple"; readonly of: number };

export interface SedCommand {
  readonly from: Address | undefined;
  readonly to: Address | undefined;
  readonly negated: boolean;
  readonly letter: string;
  /** A text to insert, a label, or a file. */
  readonly text: string;
  readonly matcher?: Matcher | undefined;
  readonly replacement?: readonly Piece[];
  readonly flags?: SubstituteFlags;
  readonly map?: ReadonlyMap<string, string>;
  /** Where a block ends, or a branch leads. */
  target: number;
}

/** A part of a replacement: text, a group, or a change of case. */
export type Piece = string | number | { readonly turn: string };

export interface SubstituteFlags {
  readonly all: boolean;
  readonly nth: number;
  readonly prints: boolean;
  readonly file: string | undefined;
}

interface Reader {
  readonly text: string;
  at: number;
  readonly extended: boolean;
}

const fail = (message: string): never => {
  throw new Failure(`-e expression #1, ${message}`);
};

/** The commands of a script. */
export function parseSed(text: string, extended: boolean): readonly SedCommand[] {
  const reader: Reader = { text, at: 0, extended };
  const commands: SedCommand[] = [];
  const open: number[] = [];
  for (;;) {
    skip(reader, /[\s;]/);
    if (reader.at >= text.length) break;
    if (text[reader.at] === "#") {
      skip(reader, /[^\n]/);
      continue;
    }
    const command = readCommand(reader);
    if (command.letter === "{") open.push(commands.length);
    if (command.letter === "}") {
      const start = open.pop();
      if (start === undefined) return fail(`char ${reader.at}: unexpected \`}'`);
      commands[start]!.target = commands.length;
    }
    commands.push(command);
  }
  if (open.length > 0) fail("char 0: unmatched `{'");
  for (const command of commands)
    if ("btT".includes(command.letter)) {
      const label = commands.findIndex((one) => one.letter === ":" && one.text === command.text);
      if (command.text !== "" && label < 0)
        throw new Failure(`can't find label for jump to \`${command.text}'`);
      command.target = command.text === "" ? commands.length : label;
    }
  return commands;
}

function skip(reader: Reader, what: RegExp): void {
  while (reader.at < reader.text.length && what.test(reader.text[reader.at]!)) reader.at += 1;
}

function readAddress(reader: Reader): Address | undefined {
  const rest = reader.text.slice(reader.at, reader.at + 40);
  const step = /^(\d+)~(\d+)/.exec(rest);
  if (step !== null) {
    reader.at += step[0].length;
    return { type: "step", first: Number(step[1]), step: Number(step[2]) };
  }
  const line = /^\d+/.exec(rest);
  if (line !== null) {
    reader.at += line[0].length;
    return { type: "line", line: Number(line[0]) };
  }
  if (rest.startsWith("$")) {
    reader.at += 1;
    return { type: "last" };
  }
  const more = /^([+~])(\d+)/.exec(rest);
  if (more !== null) {
    reader.at += more[0].length;
    const count = Number(more[2]);
    return more[1] === "+" ? { type: "more", count } : { type: "multiple", of: count };
  }
  if (!/^[/\\]/.test(rest)) return undefined;
  if (rest.startsWith("\\")) reader.at += 1;
  const source = delimited(reader, reader.text[reader.at]!, true);
  const flags = /^[IM]+/.exec(reader.text.slice(reader.at))?.[0] ?? "";
  reader.at += flags.length;
  return { type: "expression", matcher: compile(reader, source, flags) };
}

function compile(reader: Reader, source: string, flags: string): Matcher | undefined {
  if (source === "") return undefined;
  try {
    return matcherOf(source, {
      extended: reader.extended,
      ignoreCase: /i/i.test(flags),
      lines: /m/i.test(flags),
    });
  } catch (error) {
    return fail(`char ${reader.at}: ${(error as Error).message}`);
  }
}

/** The text up to a delimiter, from behind the one at this place. */
function delimited(reader: Reader, delimiter: string, isPattern: boolean): string {
  let result = "";
  reader.at += 1;
  for (; reader.at < reader.text.length; reader.at++) {
    const character = reader.text[reader.at]!;
    if (character === delimiter) {
      reader.at += 1;
      return result;
    }
    if (character === "\\") {
      reader.at += 1;
      const next = reader.text[reader.at] ?? "";
      // An escaped delimiter is itself; what it would mean in an expression, it loses.
      if (next === delimiter)
        result += isPattern && /[.*+?|(){}^$]/.test(next) ? `[${next}]` : next;
      else result += `\\${next}`;
    } else if (character === "[" && isPattern) {
      const end = classEnd(reader.text, reader.at);
      result += reader.text.slice(reader.at, end);
      reader.at = end - 1;
    } else result += character;
  }
  return fail(`char ${reader.at}: unterminated ${isPattern ? "address regex" : "`s' command"}`);
}

/** Where a class in brackets ends; an open bracket alone is a character. */
function classEnd(text: string, start: number): number {
  let at = start + 1;
  if (text[at] === "^") at += 1;
  if (text[at] === "]") at += 1;
  while (at < text.length && text[at] !== "]" && text[at] !== "\n") {
    const named = /^\[[:.=].*?[:.=]\]/.exec(text.slice(at, at + 20));
    at += named === null ? 1 : named[0].length;
  }
  return text[at] === "]" ? at + 1 : start + 1;
}

function readCommand(reader: Reader): SedCommand {
  const from = readAddress(reader);
  let to: Address | undefined;
  skip(reader, /[ \t]/);
  if (from !== undefined && reader.text[reader.at] === ",") {
    reader.at += 1;
    skip(reader, /[ \t]/);
    to = readAddress(reader);
    if (to === undefined) fail(`char ${reader.at}: unexpected \`,'`);
    skip(reader, /[ \t]/);
  }
  let negated = false;
  while (reader.text[reader.at] === "!") {
    negated = true;
    reader.at += 1;
    skip(reader, /[ \t]/);
  }
  const letter = reader.text[reader.at];
  if (letter === undefined) return fail(`char ${reader.at}: missing command`);
  reader.at += 1;
  const base = { from, to, negated, letter, text: "", target: 0 };
  if (letter === "{") return base;
  if ("}=dDgGhHnNpPxlzF".includes(letter)) {
    ended(reader);
    return base;
  }
  if (letter === "q" || letter === "Q") {
    const text = word(reader, /[ \t\d]/).trim();
    ended(reader);
    return { ...base, text };
  }
  if (":btT".includes(letter)) {
    skip(reader, /[ \t]/);
    return { ...base, text: word(reader, letter === ":" ? /[^\n;]/ : /[^\n;}]/).trim() };
  }
  if ("rRwW".includes(letter)) {
    skip(reader, /[ \t]/);
    return { ...base, text: word(reader, /[^\n]/) };
  }
  if ("aic".includes(letter)) return { ...base, text: inserted(reader) };
  if (letter === "s") return { ...base, ...substitution(reader) };
  if (letter === "y") return { ...base, map: transliteration(reader) };
  return fail(`char ${reader.at}: unknown command: \`${letter}'`);
}

function word(reader: Reader, what: RegExp): string {
  const start = reader.at;
  skip(reader, what);
  return reader.text.slice(start, reader.at);
}

function ended(reader: Reader): void {
  skip(reader, /[ \t]/);
  const next = reader.text[reader.at];
  if (next !== undefined && !"\n;}#".includes(next))
    fail(`char ${reader.at + 1}: extra characters after command`);
}

/** The text of `a`, `i` and `c`, in one line or behind a backslash. */
function inserted(reader: Reader): string {
  skip(reader, /[ \t]/);
  const { text } = reader;
  if (text[reader.at] === "\\") {
    reader.at += 1;
    const start = reader.at;
    skip(reader, /[ \t]/);
    if (text[reader.at] === "\n") reader.at += 1;
    else if (text[start] === "t") reader.at = start;
  }
  let result = "";
  for (; reader.at < text.length; reader.at++) {
    const character = text[reader.at]!;
    if (character === "\n") break;
    if (character === "\\" && reader.at + 1 < text.length) {
      reader.at += 1;
      const next = text[reader.at]!;
      result += next === "t" ? "\t" : next;
    } else result += character;
  }
  if (result === "" && reader.at >= text.length) fail("expected \\ after `a', `c' or `i'");
  return `${result}\n`;
}

function substitution(reader: Reader): Pick<SedCommand, "matcher" | "replacement" | "flags"> {
  const delimiter = reader.text[reader.at];
  if (delimiter === undefined || delimiter === "\n" || delimiter === "\\")
    return fail(`char ${reader.at}: unterminated \`s' command`);
  const source = delimited(reader, delimiter, true);
  reader.at -= 1;
  const fresh = delimited(reader, delimiter, false);
  const written = /^[gpiImMe0-9]*/.exec(reader.text.slice(reader.at))![0];
  reader.at += written.length;
  let file: string | undefined;
  if (reader.text[reader.at] === "w") {
    reader.at += 1;
    skip(reader, /[ \t]/);
    file = word(reader, /[^\n]/);
  } else {
    skip(reader, /[ \t]/);
    const next = reader.text[reader.at];
    if (next !== undefined && !"\n;}#".includes(next))
      fail(`char ${reader.at + 1}: unknown option to \`s'`);
  }
  if (written.includes("e")) fail(`char ${reader.at}: the flag e is not done here`);
  const matcher = compile(reader, source, written);
  const replacement = piecesOf(fresh);
  const highest = Math.max(0, ...replacement.filter((one) => typeof one === "number"));
  if (matcher !== undefined && highest > matcher.groups)
    fail(`char ${reader.at}: invalid reference \\${highest} on \`s' command's RHS`);
  const nth = Number(/\d+/.exec(written)?.[0] ?? 1);
  return {
    matcher,
    replacement,
    flags: { all: written.includes("g"), nth, prints: written.includes("p"), file },
  };
}

function piecesOf(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let plain = "";
  const add = (piece: Piece): void => {
    if (plain !== "") pieces.push(plain);
    plain = "";
    pieces.push(piece);
  };
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === "&") add(0);
    else if (character === "\\" && at + 1 < text.length) {
      at += 1;
      const next = text[at]!;
      if (/\d/.test(next)) add(Number(next));
      else if ("ULEul".includes(next)) add({ turn: next });
      else plain += next === "n" ? "\n" : next === "t" ? "\t" : next;
    } else plain += character;
  }
  if (plain !== "") pieces.push(plain);
  return pieces;
}

function transliteration(reader: Reader): ReadonlyMap<string, string> {
  const delimiter = reader.text[reader.at]!;
  const read = (): readonly string[] =>
    [...delimited(reader, delimiter, false).matchAll(/\\(.)|./gs)].map(([all, code]) =>
      code === undefined ? all : code === "n" ? "\n" : code === "t" ? "\t" : code,
    );
  const from = read();
  reader.at -= 1;
  const to = read();
  if (from.length !== to.length)
    fail(`char ${reader.at}: strings for \`y' command are different lengths`);
  return new Map(from.map((one, n) => [one, to[n]!]));
}
