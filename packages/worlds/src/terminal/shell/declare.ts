/** Builtins that declare variables. */
import { print } from "../commands/print.js";
import { evaluate } from "./arithmetic.js";
import { setElements } from "./assign.js";
import { elementsOf, keyOf } from "./parameters.js";
import { type Call, type Shell, ShellError, setVariable, type Variable } from "./shell.js";

const NAME = /^([A-Za-z_][A-Za-z0-9_]*)(?:(\+?=)(.*))?$/s;

interface Declaration {
  readonly name: string;
  readonly value: string | undefined;
}

function declarations(call: Call, operands: readonly string[]): readonly Declaration[] {
  return operands.map((operand) => {
    const found = NAME.exec(operand);
    if (found === null) throw new ShellError(`${call.name}: \`${operand}': not a valid identifier`);
    const [, name, operator, value] = found as unknown as [
      string,
      string,
      string | undefined,
      string | undefined,
    ];
    const old = call.shell.variables.get(name)?.value ?? "";
    return { name, value: operator === "+=" ? old + value! : value };
  });
}

function split(call: Call): { readonly flags: string; readonly operands: readonly string[] } {
  const flags = call.args.filter((one) => /^[-+][A-Za-z]+$/.test(one)).join("");
  return { flags, operands: call.args.filter((one) => !/^([-+][A-Za-z]+|--)$/.test(one)) };
}

const mark = (shell: Shell, name: string, marks: Partial<Variable>): void => {
  shell.variables.set(name, { value: undefined, ...shell.variables.get(name), ...marks });
};

export function exportVariables(call: Call): number {
  const { shell } = call;
  const { flags, operands } = split(call);
  if (operands.length === 0) {
    for (const [name, { value, exported }] of [...shell.variables].sort(([a], [b]) =>
      a < b ? -1 : 1,
    ))
      if (exported && value !== undefined)
        print(shell, `declare -x ${name}=${doubleQuoted(value)}\n`);
    return 0;
  }
  for (const { name, value } of declarations(call, operands)) {
    if (value !== undefined) setVariable(shell, name, value);
    mark(shell, name, { exported: !flags.includes("n") });
  }
  return 0;
}

const doubleQuoted = (text: string): string => `"${text.replace(/["\\$`]/g, "\\$&")}"`;

export function makeReadonly(call: Call): number {
  const { shell } = call;
  for (const { name, value } of declarations(call, split(call).operands)) {
    if (value !== undefined) setVariable(shell, name, value);
    mark(shell, name, { readonly: true });
  }
  return 0;
}

export function local(call: Call): number {
  const scope = call.shell.scopes.at(-1);
  if (scope === undefined) throw new ShellError("local: can only be used in a function");
  return declareIn(call, scope);
}

/** `declare`: local inside functions, unless `-g`. */
export function declare(call: Call): number {
  const { flags, operands } = split(call);
  if (operands.length === 0 || flags.includes("p")) return show(call, operands);
  return declareIn(call, flags.includes("g") ? undefined : call.shell.scopes.at(-1));
}

function declareIn(call: Call, scope: Map<string, Variable | undefined> | undefined): number {
  const { shell } = call;
  const { flags, operands } = split(call);
  for (const { name, value } of declarations(call, operands)) {
    if (scope !== undefined && !scope.has(name)) {
      scope.set(name, shell.variables.get(name));
      shell.variables.delete(name);
    }
    const marks = {
      ...(flags.includes("x") && { exported: true }),
      ...(flags.includes("i") && { integer: true }),
      ...(flags.includes("A") && {
        isMap: true,
        elements: new Map(shell.variables.get(name)?.elements),
      }),
      ...(flags.includes("a") && { elements: new Map(shell.variables.get(name)?.elements) }),
    };
    mark(shell, name, marks);
    if (value !== undefined) {
      const text = flags.includes("i") ? String(evaluate(shell, value)) : value;
      const turned = flags.includes("u")
        ? text.toUpperCase()
        : flags.includes("l")
          ? text.toLowerCase()
          : text;
      setVariable(shell, name, turned);
    }
    if (flags.includes("r")) mark(shell, name, { readonly: true });
  }
  return 0;
}

function show({ shell, name: command }: Call, names: readonly string[]): number {
  let status = 0;
  for (const name of names.length > 0 ? names : [...shell.variables.keys()].sort()) {
    const variable = shell.variables.get(name);
    if (variable === undefined) {
      status = 1;
      print(shell, `bash: line ${shell.line}: ${command}: ${name}: not found\n`, 2);
      continue;
    }
    const { value, elements, isMap, exported, readonly, integer } = variable;
    const flags = `${elements ? (isMap ? "A" : "a") : ""}${integer ? "i" : ""}${readonly ? "r" : ""}${exported ? "x" : ""}`;
    const text =
      elements === undefined
        ? value === undefined
          ? ""
          : `=${doubleQuoted(value)}`
        : `=(${[...elements].map(([key, one]) => `[${key}]=${doubleQuoted(one)}${isMap ? " " : ""}`).join(isMap ? "" : " ")})`;
    print(shell, `declare -${flags || "-"} ${name}${text}\n`);
  }
  return status;
}

export function unset(call: Call): number {
  const { shell } = call;
  const { flags, operands } = split(call);
  for (const operand of operands) {
    const element = /^([A-Za-z_]\w*)\[(.*)\]$/.exec(operand);
    if (element !== null) {
      const elements = new Map(elementsOf(shell, element[1]!));
      elements.delete(keyOf(shell, element[1]!, element[2]!));
      setElements(shell, element[1]!, elements);
    } else if (flags.includes("f")) shell.functions.delete(operand);
    else if (shell.variables.get(operand)?.readonly)
      throw new ShellError(`unset: ${operand}: cannot unset: readonly variable`);
    else if (!shell.variables.delete(operand) && !flags.includes("v"))
      shell.functions.delete(operand);
  }
  return 0;
}
