/** Builtins that read lines into variables. */
import { setElements } from "./assign.js";
import { type Call, type Shell, ShellError, setVariable, textOf } from "./shell.js";
import { nothing, read, readLine, type Stream } from "./streams.js";

/** `read`: a line, cut into words for the variables. */
export function readVariables({ shell, args }: Call): number {
  let isRaw = false;
  let array: string | undefined;
  let end = "\n";
  let count: number | undefined;
  let stream: Stream = shell.streams.get(0) ?? nothing;
  let at = 0;
  for (; at < args.length && /^-./.test(args[at]!); at++) {
    if (args[at] === "--") {
      at += 1;
      break;
    }
    for (const letter of args[at]!.slice(1)) {
      if (letter === "r") isRaw = true;
      else if (letter === "s" || letter === "e") continue;
      else if ("adnNptui".includes(letter)) {
        const rest = args[at]!.slice(args[at]!.indexOf(letter) + 1);
        const value = rest !== "" ? rest : (args[++at] ?? "");
        if (letter === "a") array = value;
        if (letter === "d") end = value === "" ? "\0" : value[0]!;
        if (letter === "n" || letter === "N") count = Number(value);
        if (letter === "u") stream = shell.streams.get(Number(value)) ?? nothing;
        break;
      } else throw new ShellError(`read: -${letter}: invalid option`, 2);
    }
  }
  const names = args.slice(at);
  const { text, isWhole } =
    count === undefined ? wholeLine(shell, stream, end, isRaw) : some(shell, stream, count);
  if (array !== undefined) {
    const words = cut(shell, text, Number.POSITIVE_INFINITY, isRaw);
    setElements(shell, array, new Map(words.map((word, n) => [String(n), word])));
  } else if (names.length === 0) setVariable(shell, "REPLY", plain(text, isRaw));
  else {
    const words = cut(shell, text, names.length, isRaw);
    names.forEach((name, n) => {
      if (!/^[A-Za-z_]\w*$/.test(name))
        throw new ShellError(`read: \`${name}': not a valid identifier`);
      setVariable(shell, name, words[n] ?? "");
    });
  }
  return isWhole ? 0 : 1;
}

function some(shell: Shell, stream: Stream, count: number) {
  const text = read(shell.machine, stream, count);
  const line = text.indexOf("\n");
  if (line < 0) return { text, isWhole: text.length === count };
  if ("position" in stream) stream.position -= text.length - line - 1;
  return { text: text.slice(0, line), isWhole: true };
}

function wholeLine(shell: Shell, stream: Stream, end: string, isRaw: boolean) {
  let text = "";
  for (;;) {
    const line = readLine(shell.machine, stream, end);
    if (line === undefined) return { text, isWhole: false };
    const isWhole = line.endsWith(end);
    const bare = isWhole ? line.slice(0, -1) : line;
    if (!isRaw && isWhole && /(?<!\\)(?:\\\\)*\\$/.test(bare)) {
      text += bare.slice(0, -1);
      continue;
    }
    return { text: text + bare, isWhole };
  }
}

const plain = (text: string, isRaw: boolean): string =>
  isRaw ? text : text.replace(/\\(.)/gs, "$1");

/** Cuts a line at IFS; the last word keeps what is left. */
function cut(shell: Shell, text: string, count: number, isRaw: boolean): readonly string[] {
  const separators = textOf(shell, "IFS") ?? " \t\n";
  const isBlank = (one: string): boolean => " \t\n".includes(one) && separators.includes(one);
  const words: string[] = [];
  let at = 0;
  const skipBlanks = (): void => {
    while (at < text.length && isBlank(text[at]!)) at += 1;
  };
  skipBlanks();
  while (at < text.length) {
    if (words.length === count - 1) {
      let end = text.length;
      while (end > at && isBlank(text[end - 1]!)) end -= 1;
      let rest = text.slice(at, end);
      // One separator at the very end belongs to no word.
      const last = rest.at(-1);
      if (
        last !== undefined &&
        separators.includes(last) &&
        ![...rest.slice(0, -1)].some((one) => separators.includes(one))
      )
        rest = rest.slice(0, -1);
      words.push(plain(rest, isRaw));
      return words;
    }
    let word = "";
    while (at < text.length && !separators.includes(text[at]!)) {
      if (text[at] === "\\" && !isRaw && at + 1 < text.length) at += 1;
      word += text[at];
      at += 1;
    }
    words.push(word);
    skipBlanks();
    if (at < text.length && separators.includes(text[at]!) && !isBlank(text[at]!)) {
      at += 1;
      skipBlanks();
    } else if (at < text.length && word === "" && !isBlank(text[at - 1] ?? "")) at += 1;
  }
  return words;
}

/** `mapfile`: lines as an array. */
export function readArray({ shell, args }: Call): number {
  const isBare = args.some((one) => /^-\w*t/.test(one));
  const names = args.filter((one) => !one.startsWith("-"));
  const stream = shell.streams.get(0) ?? nothing;
  const elements = new Map<string, string>();
  for (
    let line = readLine(shell.machine, stream);
    line !== undefined;
    line = readLine(shell.machine, stream)
  )
    elements.set(String(elements.size), isBare ? line.replace(/\n$/, "") : line);
  setElements(shell, names[0] ?? "MAPFILE", elements);
  return 0;
}
