/** Assignments: of texts, of elements, of arrays. */
import { evaluate } from "./arithmetic.js";
import { expandText, expandWords } from "./expand.js";
import { spend } from "./machine.js";
import { keyOf } from "./parameters.js";
import { type Shell, ShellError, setVariable, textOf, type Variable } from "./shell.js";
import type { ArrayElement, Assignment, Word } from "./syntax.js";

/** Elements that an array may have. */
const MOST_ELEMENTS = 100_000;

/** Carries out an assignment. */
export function assign(shell: Shell, assignment: Assignment): void {
  const { name, index, append, value, isArray } = assignment;
  const old = shell.variables.get(name);
  if (isArray) {
    setElements(
      shell,
      name,
      arrayOf(shell, name, value as readonly ArrayElement[], append ? old : undefined),
    );
    return;
  }
  const text = expandText(shell, value as Word);
  if (index !== undefined) {
    const key = keyOf(shell, name, expandText(shell, index));
    const before = elementsOfVariable(old);
    const whole = append ? `${before.get(key) ?? ""}${text}` : text;
    setElements(shell, name, sorted(new Map(before).set(key, whole), old));
    return;
  }
  if (old?.integer) {
    const sum = append ? evaluate(shell, textOf(shell, name) ?? "0") : 0n;
    setVariable(shell, name, String(sum + evaluate(shell, text)));
  } else setVariable(shell, name, append ? `${textOf(shell, name) ?? ""}${text}` : text);
}

const elementsOfVariable = (variable: Variable | undefined): ReadonlyMap<string, string> =>
  variable?.elements ?? new Map(variable?.value === undefined ? [] : [["0", variable.value]]);

/** Elements in the order of their indices. */
function sorted(
  elements: Map<string, string>,
  old: Variable | undefined,
): ReadonlyMap<string, string> {
  if (old?.isMap) return elements;
  const keys = [...elements.keys()];
  if (keys.every((key, n) => n === 0 || Number(keys[n - 1]) < Number(key))) return elements;
  return new Map([...elements].sort(([a], [b]) => Number(a) - Number(b)));
}

/** Makes a variable an array of these elements. */
export function setElements(
  shell: Shell,
  name: string,
  elements: ReadonlyMap<string, string>,
): void {
  const old = shell.variables.get(name);
  if (old?.readonly) throw new ShellError(`${name}: readonly variable`, 1, true);
  // All of them were copied.
  spend(shell.machine, elements.size / 2);
  if (elements.size > MOST_ELEMENTS) throw new ShellError(`${name}: too many elements`, 1, true);
  shell.variables.set(name, { ...old, value: undefined, elements });
}

function arrayOf(
  shell: Shell,
  name: string,
  parts: readonly ArrayElement[],
  old: Variable | undefined,
): ReadonlyMap<string, string> {
  const elements = new Map(elementsOfVariable(old));
  let next = Math.max(-1, ...[...elements.keys()].map(Number).filter(Number.isFinite)) + 1;
  const put = (key: string, value: string): void => {
    elements.set(key, value);
    next = Number(key) + 1;
  };
  for (const { index, value } of parts) {
    if (index !== undefined)
      put(keyOf(shell, name, expandText(shell, index)), expandText(shell, value));
    else for (const word of expandWords(shell, [value])) put(String(next), word);
  }
  return sorted(elements, shell.variables.get(name));
}
