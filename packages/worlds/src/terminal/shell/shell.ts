/** A shell's state: variables, functions, folder, open files. */
import { type Machine, Stopped, spend } from "./machine.js";
import type { Stream } from "./streams.js";
import type { Command, Script } from "./syntax.js";

export interface Variable {
  readonly value: string | undefined;
  /** Elements by index, in order of their indices where those are numbers. */
  readonly elements?: ReadonlyMap<string, string>;
  readonly isMap?: boolean;
  readonly exported?: boolean;
  readonly readonly?: boolean;
  readonly integer?: boolean;
}

/** What runs commands inside others. */
export interface Runner {
  /** Runs a command with arguments, with the shell's streams. */
  execute(shell: Shell, words: readonly string[]): number;
  /** Runs a text as commands. */
  evaluate(shell: Shell, text: string): number;
  /** What commands write. */
  output(shell: Shell, script: Script): string;
}

export interface Shell {
  readonly machine: Machine;
  /** `$0`, and the name in messages. */
  name: string;
  line: number;
  folder: string;
  status: number;
  readonly variables: Map<string, Variable>;
  /** What variables were before a function made them its own, innermost function last. */
  readonly scopes: Map<string, Variable | undefined>[];
  readonly functions: Map<string, Command>;
  positional: readonly string[];
  readonly options: Set<string>;
  readonly traps: Map<string, string>;
  streams: Map<number, Stream>;
  /** Functions, scripts and substitutions inside one another. */
  depth: number;
  /** Above 0 where a failure is asked about, so that `set -e` does not apply. */
  asked: number;
  readonly process: number;
  background: number | undefined;
  readonly pipeStatus: number[];
  readonly runner: Runner;
  /** When it began, in milliseconds. */
  readonly started: number;
}

/** A command that is being carried out. */
export interface Call {
  readonly shell: Shell;
  readonly name: string;
  readonly args: readonly string[];
}

export type CommandFunction = (call: Call) => number;

/** Ends a shell. */
export class Exit {
  constructor(readonly status: number) {}
}

/** Ends a function or a sourced script. */
export class Return {
  constructor(readonly status: number) {}
}

/** Leaves loops, or goes on with the next round of one. */
export class LoopJump {
  constructor(
    public levels: number,
    readonly goesOn: boolean,
  ) {}
}

/** A mistake that ends the present command, with its message. */
export class ShellError {
  constructor(
    readonly message: string,
    readonly status = 1,
    /** Whether it ends a script. */
    readonly isFatal = false,
  ) {}
}

/** Its nesting is limited, because this program's own is. */
export const DEEPEST_SHELL = 100;
/** What a variable may hold. */
export const LONGEST_VALUE = 2 ** 20;

/** A copy for `( … )`, pipes and substitutions: what it changes stays in it, but for files. */
export function subshell(shell: Shell): Shell {
  if (shell.depth > DEEPEST_SHELL) throw new Stopped("its shells are nested too deeply");
  const process = shell.machine.process++;
  spend(shell.machine, (shell.variables.size + shell.functions.size) / 10);
  return {
    ...shell,
    variables: new Map(shell.variables),
    scopes: shell.scopes.map((scope) => new Map(scope)),
    functions: new Map(shell.functions),
    options: new Set(shell.options),
    traps: new Map(),
    streams: new Map(shell.streams),
    pipeStatus: [...shell.pipeStatus],
    process,
    depth: shell.depth + 1,
  };
}

/** Sets a variable to a text. */
export function setVariable(shell: Shell, name: string, value: string): void {
  const old = shell.variables.get(name);
  if (old?.readonly) throw new ShellError(`${name}: readonly variable`, 1, true);
  if (value.length > LONGEST_VALUE) throw new ShellError(`${name}: the value is too long`, 1, true);
  const isExported = old?.exported || shell.options.has("allexport");
  if (old?.elements !== undefined) {
    const elements = new Map(old.elements).set("0", value);
    shell.variables.set(name, { ...old, elements });
  } else if (old === undefined) shell.variables.set(name, { value, exported: isExported });
  else shell.variables.set(name, { ...old, value, exported: isExported });
}

/** A variable's text. */
export function textOf(shell: Shell, name: string): string | undefined {
  const variable = shell.variables.get(name);
  return variable?.elements === undefined ? variable?.value : variable.elements.get("0");
}

/** What programs are given of the variables. */
export function environment(shell: Shell): readonly (readonly [string, string])[] {
  return [...shell.variables].flatMap(([name, { value, exported }]) =>
    exported && value !== undefined ? [[name, value] as const] : [],
  );
}
