/** What words become: parameters, commands and arithmetic filled in, split, and matched with files. */
import { evaluate, evaluateNumber } from "./arithmetic.js";
import { expandBraces } from "./braces.js";
import { writeFile } from "./file-system.js";
import { spend } from "./machine.js";
import { elementsOf, parameterValues, type Values } from "./parameters.js";
import { expandPaths, isPattern, patternSource, plainPattern } from "./pattern.js";
import { matcherOf } from "./regex.js";
import { LONGEST_VALUE, type Shell, ShellError, setVariable, textOf } from "./shell.js";
import type { Parameter, Word, WordPart } from "./syntax.js";

/** A word that is being made: its text, and the same as a pattern in which what was quoted is plain. */
interface Field {
  text: string;
  pattern: string;
  isPattern: boolean;
}

interface Fields {
  readonly done: Field[];
  current: Field | undefined;
  /** Whether unquoted values are split. */
  readonly splits: boolean;
}

/** The arguments that words become. */
export function expandWords(shell: Shell, words: readonly Word[]): string[] {
  const all: string[] = [];
  for (const word of words) {
    const only = word[0];
    if (
      word.length === 1 &&
      only?.type === "text" &&
      (only.quoted || /^[\w./:=,+-]*$/.test(only.text))
    ) {
      all.push(only.text);
      continue;
    }
    for (const one of expandBraces(word)) {
      const fields = fieldsOf(shell, one, true);
      for (const field of fields) {
        const paths =
          field.isPattern && !shell.options.has("noglob")
            ? expandPaths(shell.machine, shell.folder, field.pattern)
            : [];
        if (paths.length > 0) for (const path of paths) all.push(path);
        else if (!(field.isPattern && shell.options.has("nullglob"))) all.push(field.text);
      }
    }
  }
  return all;
}

/** The text that a word becomes where it is neither split nor matched. */
export function expandText(shell: Shell, word: Word): string {
  const only = word[0];
  if (word.length === 0) return "";
  if (word.length === 1 && only?.type === "text" && !only.text.includes("~")) return only.text;
  return fieldsOf(shell, word, false)
    .map(({ text }) => text)
    .join(" ");
}

/** The pattern that a word becomes. */
export const expandPattern = (shell: Shell, word: Word): string =>
  fieldsOf(shell, word, false)
    .map(({ pattern }) => pattern)
    .join(" ");

function fieldsOf(shell: Shell, word: Word, splits: boolean): readonly Field[] {
  const fields: Fields = { done: [], current: undefined, splits };
  word.forEach((part, n) => {
    addPart(shell, fields, part, n === 0, n === word.length - 1);
  });
  finish(fields);
  return fields.done;
}

function put(fields: Fields, text: string, quoted: boolean): void {
  fields.current ??= { text: "", pattern: "", isPattern: false };
  const { current } = fields;
  current.text += text;
  if (current.text.length > LONGEST_VALUE) throw new ShellError("a word is too long");
  if (quoted) current.pattern += plainPattern(text);
  else {
    current.pattern += text.includes("\\") ? text.replaceAll("\\", "\\\\") : text;
    current.isPattern ||= isPattern(text);
  }
}

function finish(fields: Fields): void {
  if (fields.current !== undefined) fields.done.push(fields.current);
  fields.current = undefined;
}

function addPart(
  shell: Shell,
  fields: Fields,
  part: WordPart,
  isFirst: boolean,
  isLast: boolean,
): void {
  switch (part.type) {
    case "text": {
      const text = isFirst && !part.quoted ? tilde(shell, part.text, isLast) : part.text;
      put(fields, text, part.quoted);
      break;
    }
    case "parameter":
      addParameter(shell, fields, part);
      break;
    case "command":
      addValue(shell, fields, shell.runner.output(shell, part.script), part.quoted);
      break;
    case "arithmetic": {
      const value = evaluate(shell, expandText(shell, part.expression));
      addValue(shell, fields, String(value), part.quoted);
      break;
    }
    case "process": {
      const path = `/dev/fd/${63 - (shell.machine.process % 50)}`;
      const text = shell.runner.output({ ...shell, streams: new Map(shell.streams) }, part.script);
      writeFile(shell.machine.fs, path, text === "" ? "" : `${text}\n`);
      put(fields, path, true);
      break;
    }
  }
}

function tilde(shell: Shell, text: string, isLast: boolean): string {
  if (!text.startsWith("~")) return text;
  const end = text.indexOf("/");
  const user = text.slice(1, end < 0 ? undefined : end);
  if (end < 0 && !isLast) return text;
  const rest = end < 0 ? "" : text.slice(end);
  if (user === "") return `${textOf(shell, "HOME") ?? "/root"}${rest}`;
  if (user === "root") return `/root${rest}`;
  return user === "+" ? `${shell.folder}${rest}` : text;
}

/** Adds a value, split by IFS where it is not quoted. */
function addValue(shell: Shell, fields: Fields, value: string, quoted: boolean): void {
  spend(shell.machine, value.length / 40);
  if (quoted || !fields.splits) {
    put(fields, value, quoted);
    return;
  }
  if (value === "") return;
  const separators = textOf(shell, "IFS") ?? " \t\n";
  if (separators === "") put(fields, value, false);
  if (separators === "") return;
  let from = 0;
  let endedByBlank = false;
  for (let at = 0; at <= value.length; at++) {
    const character = value[at];
    if (character !== undefined && !separators.includes(character)) continue;
    if (at > from) {
      put(fields, value.slice(from, at), false);
      endedByBlank = false;
    }
    from = at + 1;
    if (character === undefined) break;
    if (" \t\n".includes(character)) {
      if (fields.current !== undefined) {
        finish(fields);
        endedByBlank = true;
      }
    } else if (endedByBlank) endedByBlank = false;
    else {
      if (fields.current === undefined) put(fields, "", true);
      finish(fields);
    }
  }
}

function addParameter(shell: Shell, fields: Fields, parameter: Parameter): void {
  const { quoted } = parameter;
  const { values, many } = valuesOf(shell, parameter, fields);
  if (many === undefined) {
    if (values.length > 0) addValue(shell, fields, values[0]!, quoted);
    else if (quoted) put(fields, "", true);
    return;
  }
  if (many === "*" && quoted) {
    const [separator = ""] = textOf(shell, "IFS") ?? " ";
    put(fields, values.join(separator), true);
    return;
  }
  values.forEach((value, n) => {
    if (n > 0) finish(fields);
    addValue(shell, fields, value, quoted);
  });
}

const given = (value: string | undefined): Values => ({
  values: value === undefined ? [] : [value],
  many: undefined,
  isSet: value !== undefined,
});

/** What a parameter becomes. */
function valuesOf(shell: Shell, parameter: Parameter, fields: Fields): Values {
  const { name, form, operator } = parameter;
  const index = parameter.index && expandText(shell, parameter.index);
  if (form === "indices")
    return { values: [...(elementsOf(shell, name)?.keys() ?? [])], many: "@", isSet: true };
  if (form === "names") {
    const names = [...shell.variables.keys()].filter((one) => one.startsWith(name)).sort();
    return { values: names, many: "@", isSet: true };
  }
  let found = parameterValues(shell, name, index);
  if (form === "indirect") {
    const target = /^([A-Za-z_]\w*)\[(.*)\]$/.exec(found.values[0] ?? "");
    const named = target?.[1] ?? found.values[0] ?? "";
    if (!/^([A-Za-z_]\w*|\d+|[@*#?$!-])$/.test(named))
      throw new ShellError(`${name}: invalid indirect expansion`);
    found = parameterValues(shell, named, target?.[2]);
  }
  if (form === "length") {
    checkSet(shell, parameter, found);
    return given(String(found.many ? found.values.length : (found.values[0] ?? "").length));
  }
  if (operator === undefined) {
    checkSet(shell, parameter, found);
    return found;
  }
  if (/^:?[-=?+]$/.test(operator)) return alternative(shell, parameter, found, fields);
  checkSet(shell, parameter, found);
  if (operator === ":") return slice(shell, parameter, found);
  const change = changeOf(shell, parameter, operator);
  for (const value of found.values) spend(shell.machine, value.length / 10);
  return { ...found, values: found.values.map(change) };
}

function checkSet(shell: Shell, { name }: Parameter, { isSet, many }: Values): void {
  if (!isSet && many === undefined && shell.options.has("nounset"))
    throw new ShellError(`${name}: unbound variable`, 1, true);
}

/** `:-`, `:=`, `:?` and `:+`, and the same without the colon. */
function alternative(shell: Shell, parameter: Parameter, found: Values, fields: Fields): Values {
  const { name, operand = [], quoted } = parameter;
  const operator = parameter.operator!;
  const isEmpty = found.many ? found.values.join(" ") === "" : found.values[0] === "";
  const isThere = found.isSet && !(operator.startsWith(":") && isEmpty);
  const kind = operator.at(-1);
  if (kind === "+" ? !isThere : isThere) return kind === "+" ? given(undefined) : found;
  if (kind === "?") {
    const message = expandText(shell, operand) || "parameter null or not set";
    throw new ShellError(`${name}: ${message}`, 127, true);
  }
  if (kind === "=") {
    const value = expandText(shell, operand);
    setVariable(shell, name, value);
    return given(value);
  }
  if (quoted || !fields.splits) return given(expandText(shell, operand));
  // The word is expanded in place: its own quotes decide what is split.
  operand.forEach((part, n) => {
    addPart(shell, fields, part, n === 0, n === operand.length - 1);
  });
  return { values: [], many: "@", isSet: true };
}

function slice(shell: Shell, parameter: Parameter, found: Values): Values {
  const { name, operand = [], second } = parameter;
  const offset = evaluateNumber(shell, expandText(shell, operand));
  const length = second && evaluateNumber(shell, expandText(shell, second));
  if (found.many === undefined) {
    const text = found.values[0] ?? "";
    const from = offset < 0 ? text.length + offset : offset;
    if (from < 0 || from > text.length) return given("");
    const to =
      length === undefined ? text.length : length < 0 ? text.length + length : from + length;
    if (to < from) throw new ShellError(`${length}: substring expression < 0`);
    return given(text.slice(from, to));
  }
  const isArguments = name === "@" || name === "*";
  const list = isArguments ? [shell.name, ...found.values] : found.values;
  const from = offset < 0 ? list.length + offset : offset;
  if (from < 0) return { ...found, values: [] };
  if (length !== undefined && length < 0)
    throw new ShellError(`${length}: substring expression < 0`);
  return { ...found, values: list.slice(from, length === undefined ? undefined : from + length) };
}

const toUpper = (text: string): string => text.replace(/[a-z]/g, (one) => one.toUpperCase());
const toLower = (text: string): string => text.replace(/[A-Z]/g, (one) => one.toLowerCase());

/** What an operator makes of each value. */
function changeOf(shell: Shell, parameter: Parameter, operator: string): (text: string) => string {
  const { operand = [], second } = parameter;
  const pattern = operator.startsWith("@") ? "" : expandPattern(shell, operand);
  const first = (source: string): ((text: string) => RegExpExecArray | null) => {
    const matcher = matcherOf(source, { extended: true, raw: true });
    return (text) => matcher.exec(text);
  };
  switch (operator) {
    case "#":
    case "##": {
      const find = first(`^(?:${patternSource(pattern, operator === "##")})`);
      return (text) => text.slice(find(text)?.[0].length ?? 0);
    }
    case "%":
    case "%%": {
      const end = patternSource(pattern, true);
      // The shortest end is found behind the longest beginning.
      const find = first(operator === "%" ? `^([^]*)(?:${end})$` : `^([^]*?)(?:${end})$`);
      return (text) => find(text)?.[1] ?? text;
    }
    case "/":
    case "//":
    case "/#":
    case "/%": {
      const source = patternSource(pattern, true);
      const fresh = second === undefined ? "" : expandText(shell, second);
      if (source === "" && operator.length < 2) return (text) => text;
      const anchored =
        operator === "/#" ? `^(?:${source})` : operator === "/%" ? `(?:${source})$` : source;
      return (text) => replaced(first(anchored), text, fresh, operator === "//", anchored);
    }
    case "^":
    case "^^":
    case ",":
    case ",,": {
      const fits = new RegExp(`^(?:${patternSource(pattern || "?", true)})$`);
      const turn = operator.startsWith("^") ? toUpper : toLower;
      return (text) =>
        [...text]
          .map((one, n) => ((operator.length > 1 || n === 0) && fits.test(one) ? turn(one) : one))
          .join("");
    }
    case "@U":
      return toUpper;
    case "@L":
      return toLower;
    case "@u":
      return (text) => toUpper(text.slice(0, 1)) + text.slice(1);
    case "@Q":
      return (text) => `'${text.replaceAll("'", "'\\''")}'`;
    default:
      throw new ShellError(`\${${parameter.name}${operator}}: bad substitution`, 1, true);
  }
}

function replaced(
  find: (text: string) => RegExpExecArray | null,
  text: string,
  fresh: string,
  all: boolean,
  source: string,
): string {
  if (!all) {
    const found = find(text);
    if (found === null) return text;
    return text.slice(0, found.index) + fresh + text.slice(found.index + found[0].length);
  }
  const matcher = matcherOf(source, { extended: true, raw: true });
  let result = "";
  let at = 0;
  while (at < text.length) {
    const found = matcher.exec(text, at);
    if (found === null) break;
    result += text.slice(at, found.index) + (found[0] === "" ? (text[found.index] ?? "") : fresh);
    at = found.index + Math.max(1, found[0].length);
    if (result.length > LONGEST_VALUE) throw new ShellError("a word is too long");
  }
  return result + text.slice(at);
}
