/** `grep`. */
import * as files from "../shell/file-system.js";
import { spend } from "../shell/machine.js";
import { matches } from "../shell/pattern.js";
import { type Matcher, matcherOf } from "../shell/regex.js";
import type { Call } from "../shell/shell.js";
import {
  complain,
  Failure,
  linesOf,
  type Options,
  options,
  out,
  pathOf,
  readNamed,
} from "./call.js";

const LONG = {
  "ignore-case": "i",
  "invert-match": "v",
  count: "c",
  "files-with-matches": "l",
  "files-without-match": "L",
  "line-number": "n",
  recursive: "r",
  "only-matching": "o",
  quiet: "q",
  silent: "q",
  "extended-regexp": "E",
  "fixed-strings": "F",
  "perl-regexp": "P",
  "word-regexp": "w",
  "line-regexp": "x",
  "max-count": "m",
  regexp: "e",
  file: "f",
  include: "1",
  exclude: "2",
  "exclude-dir": "3",
  "no-messages": "s",
  "with-filename": "H",
  "no-filename": "h",
  "after-context": "A",
  "before-context": "B",
  context: "C",
  color: "4",
  colour: "4",
  text: "a",
  null: "Z",
  "line-buffered": "5",
  "byte-offset": "b",
} as const;

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

export function grep(call: Call): number {
  // Colours are never shown, so what they should be does not matter.
  const args = call.args
    .filter((one) => !/^--colou?r/.test(one))
    .map((one) => (/^-\d+$/.test(one) ? `-C${one.slice(1)}` : one));
  const given = options(
    { ...call, args },
    "ivclLnrRoqEFPGwxm:e:f:1:2:3:sHhA:B:C:abZzI4U5",
    LONG,
    2,
  );
  const operands = [...given.operands];
  const patterns = given.values("e").flatMap((one) => one.split("\n"));
  for (const name of given.values("f")) patterns.push(...linesOf(readNamed(call, name)));
  if (!given.has("e") && !given.has("f")) {
    const first = operands.shift();
    if (first === undefined)
      throw new Failure(
        "Usage: grep [OPTION]... PATTERNS [FILE]...\nTry 'grep --help' for more information.",
        2,
      );
    patterns.push(...first.split("\n"));
  }
  const search = searchOf(call, given, patterns);
  const isRecursive = given.has("r") || given.has("R");
  const named = operands.length > 0 ? operands : isRecursive ? ["."] : ["-"];
  const bare = operands.length === 0 && isRecursive;
  const list = isRecursive ? named.flatMap((name) => below(call, name, given, bare)) : named;
  const state: Search = {
    ...search,
    hasNames: given.has("H") || (!given.has("h") && (list.length > 1 || isRecursive)),
  };
  let found = false;
  let failed = false;
  for (const name of list) {
    let text: string;
    try {
      text = readNamed(call, name);
    } catch (error) {
      failed = true;
      if (!given.has("s")) complain(call, `${name}: ${(error as Error).message}`);
      continue;
    }
    if (searchText(call, given, state, text, name)) found = true;
    if (found && given.has("q")) return 0;
  }
  return failed ? 2 : found ? 0 : 1;
}

interface Search {
  readonly matcher: Matcher | undefined;
  readonly hasNames: boolean;
}

/** One expression of all patterns; undefined: nothing matches. */
function searchOf(call: Call, given: Options, patterns: readonly string[]): Search {
  if (patterns.length === 0) return { matcher: undefined, hasNames: false };
  const isExtended = given.has("E") || call.name === "egrep" || given.has("F") || given.has("P");
  const isFixed = given.has("F") || call.name === "fgrep";
  const one = (pattern: string): string => (isFixed ? escaped(pattern) : pattern);
  const wrapped = (source: string): string => {
    if (given.has("x")) return isExtended || isFixed ? `^(${source})$` : `^\\(${source}\\)$`;
    return source;
  };
  try {
    const extended = isExtended || isFixed;
    const joined = patterns
      .map(one)
      .map(wrapped)
      .join(extended ? "|" : "\\|");
    return {
      matcher: matcherOf(joined, { extended, ignoreCase: given.has("i"), raw: given.has("P") }),
      hasNames: false,
    };
  } catch (error) {
    throw new Failure((error as Error).message, 2);
  }
}

/** The files in a folder and below it. */
function below(call: Call, name: string, given: Options, bare: boolean): readonly string[] {
  const { machine } = call.shell;
  const isWanted = (file: string): boolean =>
    (!given.has("1") || given.values("1").some((one) => matches(machine, one, file))) &&
    !given.values("2").some((one) => matches(machine, one, file));
  const found: string[] = [];
  const look = (path: string, shown: string): void => {
    spend(machine, 2);
    const stat = files.lookUp(machine.fs, path, path === pathOf(call, name));
    if (stat === undefined) found.push(shown);
    else if (stat.kind === "folder") {
      const own = shown.split("/").at(-1)!;
      if (
        path !== pathOf(call, name) &&
        given.values("3").some((one) => matches(machine, one, own))
      )
        return;
      for (const inside of files.listFolder(machine.fs, path))
        look(
          `${path}/${inside}`,
          bare && shown === "." ? inside : `${shown.replace(/\/$/, "")}/${inside}`,
        );
    } else if (stat.kind === "file" && isWanted(shown.split("/").at(-1)!)) found.push(shown);
  };
  look(pathOf(call, name), name);
  return found;
}

/** The first match in a line at or behind a place; of words, only whole ones. */
function matchIn(
  matcher: Matcher,
  line: string,
  from: number,
  isWord: boolean,
): RegExpExecArray | null {
  for (let at = from; ; ) {
    const found = matcher.exec(line, at);
    if (found === null || !isWord) return found;
    const end = found.index + found[0].length;
    const before = line[found.index - 1] ?? " ";
    if (found[0] !== "" && !/\w/.test(before) && !/\w/.test(line[end] ?? " ")) return found;
    at = found.index + 1;
    if (at > line.length) return null;
  }
}

function searchText(
  call: Call,
  given: Options,
  { matcher, hasNames }: Search,
  text: string,
  name: string,
): boolean {
  const shown = name === "-" ? "(standard input)" : name;
  const isWord = given.has("w");
  const isBinary = text.slice(0, 32_768).includes("\0") && !given.has("a");
  const most = Number(given.value("m") ?? Number.POSITIVE_INFINITY);
  const after = Number(given.value("A") ?? given.value("C") ?? 0);
  const before = Number(given.value("B") ?? given.value("C") ?? 0);
  const hasContext = after + before > 0;
  const isPlain = !given.has("c") && !given.has("l") && !given.has("L") && !given.has("q");
  const lines = linesOf(text, given.has("z") ? "\0" : "\n");
  const shownLines: string[] = [];
  const prefix = (n: number, mark: string): string =>
    `${hasNames ? shown + mark : ""}${given.has("n") ? `${n + 1}${mark}` : ""}`;
  let count = 0;
  let last = -1;
  let until = -1;
  for (let n = 0; n < lines.length && count < most; n++) {
    const line = lines[n]!;
    spend(call.shell.machine, 0.2 + line.length / 1000);
    const found = matcher === undefined ? null : matchIn(matcher, line, 0, isWord);
    if ((found !== null) === given.has("v")) {
      if (n <= until && isPlain && !given.has("o")) {
        shownLines.push(prefix(n, "-") + line);
        last = n;
      }
      continue;
    }
    count += 1;
    if (given.has("q") || given.has("l") || given.has("L")) break;
    if (!isPlain) continue;
    if (given.has("o")) {
      for (let at = found; at !== null && !given.has("v"); ) {
        if (at[0] !== "") shownLines.push(prefix(n, ":") + at[0]);
        at = matchIn(matcher!, line, at.index + Math.max(1, at[0].length), isWord);
      }
      continue;
    }
    const start = Math.max(last + 1, n - before);
    if (hasContext && last >= 0 && start > last + 1) shownLines.push("--");
    for (let k = start; k < n; k++) shownLines.push(prefix(k, "-") + lines[k]!);
    shownLines.push(prefix(n, ":") + line);
    last = n;
    until = n + after;
  }
  if (isPlain && count >= most && hasContext)
    for (let k = last + 1; k <= until && k < lines.length; k++)
      shownLines.push(prefix(k, "-") + lines[k]!);
  const end = given.has("Z") ? "\0" : "\n";
  if (given.has("q")) return count > 0;
  if (given.has("l")) {
    if (count > 0) out(call, shown + end);
  } else if (given.has("L")) {
    if (count === 0) out(call, shown + end);
    return count === 0;
  } else if (given.has("c")) out(call, `${hasNames ? `${shown}:` : ""}${count}\n`);
  else if (isBinary && count > 0 && !given.has("o"))
    out(call, `grep: ${shown}: binary file matches\n`);
  else out(call, shownLines.map((line) => `${line}\n`).join(""));
  return count > 0;
}
