/** What commands have in common: options, files to read, messages. */
import { absolute, readFile, statFile } from "../shell/file-system.js";
import { FileError } from "../shell/inodes.js";
import type { Call, CommandFunction } from "../shell/shell.js";
import { nothing, read } from "../shell/streams.js";
import { print } from "./print.js";

/** A mistake that ends a command, with its message. */
export class Failure {
  constructor(
    readonly message: string,
    readonly status = 1,
  ) {}
}

/** A command whose mistakes are told and become its status. */
export function guarded(run: CommandFunction): CommandFunction {
  return (call) => {
    try {
      return run(call);
    } catch (error) {
      if (error instanceof Failure) {
        if (error.message.startsWith("Usage:")) print(call.shell, `${error.message}\n`, 2);
        else complain(call, error.message);
        if (/^missing|^you must/.test(error.message))
          print(call.shell, `Try '${call.name} --help' for more information.\n`, 2);
        return error.status;
      }
      if (error instanceof FileError) {
        complain(call, error.message);
        return 1;
      }
      throw error;
    }
  };
}

export const complain = ({ shell, name }: Call, message: string): void =>
  print(shell, `${name}: ${message}\n`, 2);

/** Writes to the output. */
export const out = ({ shell }: Call, text: string): void => print(shell, text);

export interface Options {
  readonly operands: readonly string[];
  has(letter: string): boolean;
  /** The last value given. */
  value(letter: string): string | undefined;
  values(letter: string): readonly string[];
}

/**
 * Reads options as getopt does: `spec` has letters, those with a value followed by a colon; long ones
 * are named by the letter that means the same.
 */
export function options(
  call: Call,
  spec: string,
  long: Readonly<Record<string, string>> = {},
  failure = 1,
): Options {
  const given = new Map<string, string[]>();
  const operands: string[] = [];
  const takes = (letter: string): boolean => spec[spec.indexOf(letter) + 1] === ":";
  const add = (letter: string, value: string): void => {
    given.set(letter, [...(given.get(letter) ?? []), value]);
  };
  const names = new Map(Object.entries(long));
  for (let at = 0; at < call.args.length; at++) {
    const arg = call.args[at]!;
    if (arg === "--") {
      operands.push(...call.args.slice(at + 1));
      break;
    }
    if (arg.startsWith("--")) {
      const [name, ...rest] = arg.slice(2).split("=") as [string, ...string[]];
      const fitting = [...names.keys()].filter((one) => one === name || one.startsWith(name));
      const chosen = fitting.includes(name) ? name : fitting.length === 1 ? fitting[0]! : undefined;
      const letter = chosen && names.get(chosen);
      if (letter === undefined) throw new Failure(`unrecognized option '${arg}'`, failure);
      if (!takes(letter)) add(letter, "");
      else if (rest.length > 0) add(letter, rest.join("="));
      else {
        at += 1;
        if (call.args[at] === undefined)
          throw new Failure(`option '--${chosen}' requires an argument`, failure);
        add(letter, call.args[at]!);
      }
      continue;
    }
    if (!/^-./.test(arg)) {
      operands.push(arg);
      continue;
    }
    for (let n = 1; n < arg.length; n++) {
      const letter = arg[n]!;
      if (letter === ":" || !spec.includes(letter))
        throw new Failure(
          `invalid option -- '${letter}'\nTry '${call.name} --help' for more information.`,
          failure,
        );
      if (!takes(letter)) {
        add(letter, "");
        continue;
      }
      const rest = arg.slice(n + 1);
      if (rest === "") at += 1;
      const value = rest === "" ? call.args[at] : rest;
      if (value === undefined)
        throw new Failure(`option requires an argument -- '${letter}'`, failure);
      add(letter, value);
      break;
    }
  }
  return {
    operands,
    has: (letter) => given.has(letter),
    value: (letter) => given.get(letter)?.at(-1),
    values: (letter) => given.get(letter) ?? [],
  };
}

/** A number that an option gives. */
export function countOf(text: string, what: string): number {
  const found = /^(\d+)(b|[kKMG]B?)?$/.exec(text);
  if (found === null) throw new Failure(`invalid ${what}: '${text}'`);
  const units: Record<string, number> = { b: 512, k: 1024, K: 1024, M: 2 ** 20, G: 2 ** 30 };
  return Number(found[1]) * (found[2] === undefined ? 1 : units[found[2][0]!]!);
}

export const pathOf = ({ shell }: Call, path: string): string =>
  path === "" ? "" : absolute(shell.folder, path);

/** What comes in. */
export function readInput({ shell }: Call, count?: number): string {
  return read(shell.machine, shell.streams.get(0) ?? nothing, count);
}

/** The bytes of a named file, or of the input for `-`; of a device, as many as asked for. */
export function readNamed(call: Call, name: string, count?: number): string {
  if (name === "-") return readInput(call);
  const { machine } = call.shell;
  const stat = statFile(machine.fs, pathOf(call, name));
  if (stat.kind === "device") {
    if (stat.content === "stdin") return readInput(call);
    return read(machine, { kind: "device", name: stat.content }, count);
  }
  return readFile(machine.fs, pathOf(call, name));
}

/** Reads files in turn; those that cannot be read are told, and the status is 1. */
export function eachFile(
  call: Call,
  names: readonly string[],
  use: (text: string, name: string) => void,
  says: (name: string, problem: string) => string = (name, problem) => `${name}: ${problem}`,
  /** Of a device, as many bytes. */
  count?: number,
): number {
  let status = 0;
  for (const name of names.length > 0 ? names : ["-"]) {
    let text: string;
    try {
      text = readNamed(call, name, count);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      complain(call, says(name, error.message));
      status = 1;
      continue;
    }
    use(text, name);
  }
  return status;
}

/** Lines without their ends; a last line without one counts, too. */
export function linesOf(text: string, end = "\n"): string[] {
  const lines = text.split(end);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Lines as text. */
export const joinLines = (lines: readonly string[], end = "\n"): string =>
  lines.length === 0 ? "" : lines.join(end) + end;

/** The last part of a path. */
export const base = (path: string): string => path.replace(/\/+$/, "").split("/").at(-1) || "/";

/** Does something to each operand; what is refused is told. */
export function each(
  call: Call,
  names: readonly string[],
  says: (name: string, problem: string) => string,
  act: (path: string, name: string) => void,
): number {
  let status = 0;
  if (names.length === 0) throw new Failure("missing operand");
  for (const name of names)
    try {
      act(pathOf(call, name), name);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      complain(call, says(name, error.message));
      status = 1;
    }
  return status;
}
