/** The values of parameters: variables, arguments, and what the shell itself knows. */
import { evaluate } from "./arithmetic.js";
import { type Shell, ShellError, type Variable } from "./shell.js";

/** A value, several (`$@`, arrays), or none. */
export interface Values {
  readonly values: readonly string[];
  /** Whether several were asked for, by `@` or `*`. */
  readonly many: "@" | "*" | undefined;
  readonly isSet: boolean;
}

const one = (value: string | undefined): Values => ({
  values: value === undefined ? [] : [value],
  many: undefined,
  isSet: value !== undefined,
});

/** What a name stands for. */
export function parameterValues(shell: Shell, name: string, index: string | undefined): Values {
  if (name === "@" || name === "*")
    return { values: shell.positional, many: name, isSet: shell.positional.length > 0 };
  if (/^\d/.test(name)) return one(name === "0" ? shell.name : shell.positional[Number(name) - 1]);
  if (index === undefined) return one(special(shell, name) ?? plain(shell.variables.get(name)));
  const elements = elementsOf(shell, name);
  if (index === "@" || index === "*") {
    const values = elements === undefined ? [] : [...elements.values()];
    return { values, many: index, isSet: values.length > 0 };
  }
  return one(elements?.get(keyOf(shell, name, index)));
}

const plain = (variable: Variable | undefined): string | undefined =>
  variable?.elements === undefined ? variable?.value : variable.elements.get("0");

/** The elements of an array; a plain variable is an array of one. */
export function elementsOf(shell: Shell, name: string): ReadonlyMap<string, string> | undefined {
  if (name === "PIPESTATUS")
    return new Map(shell.pipeStatus.map((status, n) => [String(n), String(status)]));
  const variable = shell.variables.get(name);
  if (variable?.elements !== undefined) return variable.elements;
  const value = special(shell, name) ?? variable?.value;
  return value === undefined ? undefined : new Map([["0", value]]);
}

/** The key of an element: a word in maps, otherwise a number. */
export function keyOf(shell: Shell, name: string, index: string): string {
  const variable = shell.variables.get(name);
  if (variable?.isMap) return index;
  const value = Number(evaluate(shell, index));
  if (value >= 0) return String(value);
  const keys = [...(variable?.elements?.keys() ?? [])].map(Number);
  const from = Math.max(-1, ...keys) + 1 + value;
  if (from < 0) throw new ShellError(`${name}[${index}]: bad array subscript`);
  return String(from);
}

function special(shell: Shell, name: string): string | undefined {
  const { machine } = shell;
  switch (name) {
    case "?":
      return String(shell.status);
    case "#":
      return String(shell.positional.length);
    case "$":
    case "BASHPID":
      return String(shell.process);
    case "!":
      return shell.background === undefined ? undefined : String(shell.background);
    case "-":
      return `${shell.options.has("errexit") ? "e" : ""}h${shell.options.has("nounset") ? "u" : ""}B`;
    case "RANDOM":
      return String(machine.random.int(32768));
    case "SECONDS":
      return String(Math.floor((machine.time - shell.started) / 1000));
    case "EPOCHSECONDS":
      return String(Math.floor(machine.time / 1000));
    case "LINENO":
      return String(shell.line);
    default:
      return undefined;
  }
}
