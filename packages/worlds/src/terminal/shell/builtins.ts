/** Commands that are part of the shell. */
import { echo, print, printf, testCommand } from "../commands/print.js";
import { evaluate } from "./arithmetic.js";
import { declare, exportVariables, local, makeReadonly, unset } from "./declare.js";
import { absolute, lookUp, readFile, realPath } from "./file-system.js";
import { findProgram } from "./find-program.js";
import { FileError } from "./inodes.js";
import { readArray, readVariables } from "./read.js";
import {
  type Call,
  type CommandFunction,
  Exit,
  LoopJump,
  Return,
  type Shell,
  ShellError,
  setVariable,
  textOf,
} from "./shell.js";

const number = ({ shell, args }: Call): number =>
  args[0] === undefined ? shell.status : Number(args[0]) & 255;

function changeFolder({ shell, args }: Call): number {
  const operands = args.filter((one) => !/^-[LPe]$/.test(one) && one !== "--");
  if (operands.length > 1) throw new ShellError("cd: too many arguments");
  const old = shell.folder;
  let to = operands[0] ?? textOf(shell, "HOME") ?? "/";
  if (to === "-") {
    to = textOf(shell, "OLDPWD") ?? "";
    if (to === "") throw new ShellError("cd: OLDPWD not set");
    print(shell, `${to}\n`);
  }
  if (to === "") return 0;
  const { fs } = shell.machine;
  try {
    const stat = lookUp(fs, absolute(old, to));
    if (stat === undefined) throw new ShellError(`cd: ${to}: No such file or directory`);
    if (stat.kind !== "folder") throw new ShellError(`cd: ${to}: Not a directory`);
    shell.folder = realPath(fs, absolute(old, to));
  } catch (error) {
    if (error instanceof FileError) throw new ShellError(`cd: ${to}: ${error.message}`);
    throw error;
  }
  setVariable(shell, "OLDPWD", old);
  setVariable(shell, "PWD", shell.folder);
  return 0;
}

const OPTIONS = new Map([
  ["a", "allexport"],
  ["e", "errexit"],
  ["f", "noglob"],
  ["u", "nounset"],
  ["v", "verbose"],
  ["x", "xtrace"],
  ["C", "noclobber"],
]);

function set({ shell, args }: Call): number {
  if (args.length === 0) {
    for (const [name, { value }] of [...shell.variables].sort(([a], [b]) => (a < b ? -1 : 1)))
      if (value !== undefined)
        print(
          shell,
          `${name}=${/^[\w./:=+,-]*$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`}\n`,
        );
    return 0;
  }
  const turn = (name: string, isOn: boolean): void => {
    if (isOn) shell.options.add(name);
    else shell.options.delete(name);
  };
  for (let at = 0; at < args.length; at++) {
    const option = args[at]!;
    if (option === "--") {
      shell.positional = args.slice(at + 1);
      return 0;
    }
    if (!/^[-+]./.test(option)) {
      shell.positional = args.slice(at);
      return 0;
    }
    for (const letter of option.slice(1)) {
      if (letter === "o") {
        at += 1;
        if (args[at] !== undefined) turn(args[at]!, option.startsWith("-"));
      } else if (OPTIONS.has(letter)) turn(OPTIONS.get(letter)!, option.startsWith("-"));
      else if (!"bhmBEHPT".includes(letter))
        throw new ShellError(`set: ${option}: invalid option`, 2);
    }
  }
  return 0;
}

function source({ shell, name, args }: Call): number {
  const [file, ...rest] = args;
  if (file === undefined) throw new ShellError(`${name}: filename argument required`, 2);
  const path = absolute(shell.folder, file);
  const stat = lookUp(shell.machine.fs, path);
  if (stat === undefined) throw new ShellError(`${file}: No such file or directory`);
  if (stat.kind === "folder") throw new ShellError(`${name}: ${file}: is a directory`);
  if (stat.kind === "device") return 0;
  const { positional, line } = shell;
  if (rest.length > 0) shell.positional = rest;
  try {
    shell.depth += 1;
    if (shell.depth > 100) throw new ShellError(`${name}: maximum nesting level exceeded`);
    return shell.runner.evaluate(shell, readFile(shell.machine.fs, path));
  } catch (error) {
    if (error instanceof Return) return error.status;
    throw error;
  } finally {
    shell.depth -= 1;
    if (rest.length > 0) shell.positional = positional;
    shell.line = line;
  }
}

const KEYWORDS = new Set(
  "if then else elif fi case esac for while until do done in function time { } ! [[ ]]".split(" "),
);

/** What a name is: `type`, `command -v`. */
function kindOf(shell: Shell, name: string): { kind: string; path?: string } | undefined {
  if (KEYWORDS.has(name)) return { kind: "keyword" };
  if (shell.functions.has(name)) return { kind: "function" };
  if (builtins.has(name)) return { kind: "builtin" };
  const found = findProgram(shell, name);
  return found && { kind: "file", path: found.path };
}

function type({ shell, args }: Call): number {
  const isShort = args[0] === "-t";
  const isPath = args[0] === "-p" || args[0] === "-P";
  let status = 0;
  for (const name of args.filter((one) => !/^-[tpPaf]$/.test(one))) {
    const found = kindOf(shell, name);
    if (found === undefined) {
      status = 1;
      if (!isShort && !isPath)
        print(shell, `bash: line ${shell.line}: type: ${name}: not found\n`, 2);
    } else if (isShort) print(shell, `${found.kind}\n`);
    else if (isPath) print(shell, found.path === undefined ? "" : `${found.path}\n`);
    else {
      const words = {
        keyword: "a shell keyword",
        function: "a function",
        builtin: "a shell builtin",
        file: found.path,
      }[found.kind];
      print(shell, `${name} is ${words}\n`);
    }
  }
  return status;
}

function command({ shell, args }: Call): number {
  const [first, ...rest] = args;
  if (first === undefined) return 0;
  if (first === "-v" || first === "-V") {
    let status = 0;
    for (const name of rest) {
      const found = kindOf(shell, name);
      if (found === undefined) status = 1;
      else
        print(
          shell,
          first === "-V"
            ? `${name} is ${found.path ?? `a shell ${found.kind}`}\n`
            : `${found.path ?? name}\n`,
        );
    }
    return status;
  }
  const words = first === "-p" || first === "--" ? rest : args;
  const hidden = shell.functions.get(words[0] ?? "");
  if (hidden === undefined) return shell.runner.execute(shell, words);
  shell.functions.delete(words[0]!);
  try {
    return shell.runner.execute(shell, words);
  } finally {
    shell.functions.set(words[0]!, hidden);
  }
}

function trap({ shell, args }: Call): number {
  const [first, ...names] = args.filter((one) => one !== "--");
  if (first === undefined || first === "-p" || first === "-l") return 0;
  const plain = (name: string): string => (name === "0" ? "EXIT" : name.replace(/^SIG/, ""));
  if (names.length === 0) shell.traps.delete(plain(first));
  for (const name of names.map(plain))
    if (first === "-") shell.traps.delete(name);
    else shell.traps.set(name, first);
  return 0;
}

function shift({ shell, args }: Call): number {
  const count = args[0] === undefined ? 1 : Number(args[0]);
  if (!(count >= 0)) throw new ShellError(`shift: ${args[0]}: numeric argument required`);
  if (count > shell.positional.length) return 1;
  shell.positional = shell.positional.slice(count);
  return 0;
}

function letCommand({ shell, args }: Call): number {
  let value = 0n;
  for (const arg of args) value = evaluate(shell, arg);
  return value === 0n ? 1 : 0;
}

function jump(goesOn: boolean): CommandFunction {
  return ({ args }) => {
    throw new LoopJump(Math.max(1, Number(args[0] ?? 1) || 1), goesOn);
  };
}

function getOptions({ shell, args }: Call): number {
  const [spec = "", name = "", ...rest] = args;
  const list = rest.length > 0 ? rest : shell.positional;
  const at = Number(textOf(shell, "OPTIND") ?? 1);
  const inside = Number(textOf(shell, "__OPTPOS") ?? 1);
  const word = list[at - 1];
  const next = (index: number, position: number): void => {
    setVariable(shell, "OPTIND", String(index));
    setVariable(shell, "__OPTPOS", String(position));
  };
  if (word === undefined || !/^-./.test(word) || word === "--") {
    if (word === "--") next(at + 1, 1);
    setVariable(shell, name, "?");
    return 1;
  }
  const letter = word[inside]!;
  const place = spec.indexOf(letter);
  const isLast = inside + 1 >= word.length;
  const isSilent = spec.startsWith(":");
  shell.variables.delete("OPTARG");
  if (place < 0 || letter === ":") {
    next(isLast ? at + 1 : at, isLast ? 1 : inside + 1);
    if (isSilent) setVariable(shell, "OPTARG", letter);
    else print(shell, `${shell.name}: illegal option -- ${letter}\n`, 2);
    setVariable(shell, name, "?");
    return 0;
  }
  setVariable(shell, name, letter);
  if (spec[place + 1] !== ":") {
    next(isLast ? at + 1 : at, isLast ? 1 : inside + 1);
    return 0;
  }
  const value = isLast ? list[at] : word.slice(inside + 1);
  next(isLast ? at + 2 : at + 1, 1);
  if (value !== undefined) setVariable(shell, "OPTARG", value);
  else {
    if (isSilent) setVariable(shell, "OPTARG", letter);
    else print(shell, `${shell.name}: option requires an argument -- ${letter}\n`, 2);
    setVariable(shell, name, isSilent ? ":" : "?");
  }
  return 0;
}

const nothingToDo: CommandFunction = () => 0;

export const builtins: ReadonlyMap<string, CommandFunction> = new Map<string, CommandFunction>([
  [":", nothingToDo],
  ["true", nothingToDo],
  ["false", () => 1],
  ["cd", changeFolder],
  [
    "pwd",
    ({ shell }) => {
      print(shell, `${shell.folder}\n`);
      return 0;
    },
  ],
  ["echo", echo],
  ["printf", printf],
  ["test", testCommand],
  ["[", testCommand],
  ["export", exportVariables],
  ["unset", unset],
  ["local", local],
  ["declare", declare],
  ["typeset", declare],
  ["readonly", makeReadonly],
  ["read", readVariables],
  ["mapfile", readArray],
  ["readarray", readArray],
  ["set", set],
  ["shift", shift],
  ["let", letCommand],
  [
    "eval",
    ({ shell, args }) => (shell.depth > 100 ? 1 : shell.runner.evaluate(shell, args.join(" "))),
  ],
  ["source", source],
  [".", source],
  ["type", type],
  ["command", command],
  ["builtin", ({ shell, args }) => shell.runner.execute(shell, args)],
  ["trap", trap],
  ["getopts", getOptions],
  ["break", jump(false)],
  ["continue", jump(true)],
  [
    "exit",
    (call) => {
      throw new Exit(number(call));
    },
  ],
  [
    "return",
    (call) => {
      throw new Return(number(call));
    },
  ],
  [
    "exec",
    ({ shell, args }) => {
      if (args.length === 0) return 0;
      throw new Exit(shell.runner.execute(shell, args));
    },
  ],
  ["wait", nothingToDo],
  ["hash", nothingToDo],
  ["jobs", nothingToDo],
  [
    "shopt",
    ({ shell, args }) => {
      const isOn = args[0] === "-s";
      for (const option of args.slice(1))
        if (isOn) shell.options.add(option);
        else shell.options.delete(option);
      return 0;
    },
  ],
  [
    "ulimit",
    ({ shell }) => {
      print(shell, "unlimited\n");
      return 0;
    },
  ],
  [
    "umask",
    ({ shell, args }) => {
      if (args.length === 0) print(shell, "0022\n");
      return 0;
    },
  ],
  [
    "kill",
    ({ args }) => {
      const [target] = args.filter((one) => !one.startsWith("-"));
      throw new ShellError(`kill: (${target ?? ""}) - No such process`);
    },
  ],
]);
