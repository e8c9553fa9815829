/** Runs programs and scripts. */
import { programs } from "../commands/programs.js";
import { absolute, lookUp } from "./file-system.js";
import { findProgram } from "./find-program.js";
import { type Shell, ShellError } from "./shell.js";
import { read, write } from "./streams.js";

/** Runs a script's text with arguments. */
type RunScript = (shell: Shell, name: string, text: string, args: readonly string[]) => number;

/** Runs what a name leads to. */
export function runNamed(
  shell: Shell,
  name: string,
  args: readonly string[],
  run: RunScript,
): number {
  const found = name === "" ? undefined : findProgram(shell, name);
  if (found === undefined)
    throw new ShellError(
      name.includes("/") ? `${name}: No such file or directory` : `${name}: command not found`,
      127,
    );
  const { stat, path } = found;
  if (stat.kind === "folder") throw new ShellError(`${name}: Is a directory`, 126);
  if ((stat.mode & 0o111) === 0 || stat.kind !== "file")
    throw new ShellError(`${name}: Permission denied`, 126);
  if (stat.program !== undefined) return runProgram(shell, stat.program, name, args, run);
  const { content } = stat;
  if (content.slice(0, 1000).includes("\0"))
    throw new ShellError(`${name}: cannot execute binary file: Exec format error`, 126);
  const asked = /^#![ \t]*(\S+)(?:[ \t]+(.*?))?[ \t]*(?:\n|$)/.exec(content);
  // A script is named as it was asked for, or by its path where that was looked for.
  const title = name.includes("/") ? name : path;
  if (asked === null) return run(shell, title, content, args);
  const [, by, option] = asked as unknown as [string, string, string | undefined];
  const isEnv = by.endsWith("/env");
  const interpreter = isEnv
    ? (option ?? "").replace(/^-S\s*/, "").split(/\s+/)
    : [by, ...(option ? [option] : [])];
  const [program, ...options] = interpreter as [string, ...string[]];
  const target = findProgram(shell, program);
  if (target?.stat.program === undefined)
    throw new ShellError(
      isEnv
        ? `/usr/bin/env: '${program}': No such file or directory`
        : `${name}: ${by}: bad interpreter: No such file or directory`,
      isEnv ? 127 : 126,
    );
  return runProgram(shell, target.stat.program, program, [...options, title, ...args], run);
}

function runProgram(
  shell: Shell,
  program: string,
  name: string,
  args: readonly string[],
  run: RunScript,
): number {
  if (program === "bash" || program === "sh") return runBash(shell, name, args, run);
  return programs.get(program)!({ shell, name: program, args });
}

const LETTERS = new Map([
  ["e", "errexit"],
  ["u", "nounset"],
  ["x", "xtrace"],
  ["f", "noglob"],
]);

/** `bash` and `sh`: a script, `-c`, or what comes in. */
function runBash(shell: Shell, name: string, args: readonly string[], run: RunScript): number {
  const options: string[] = [];
  let at = 0;
  let isText = false;
  let isInput = false;
  for (; at < args.length && /^[-+]./.test(args[at]!); at++) {
    const option = args[at]!;
    if (option === "--") {
      at += 1;
      break;
    }
    if (option.startsWith("--")) continue;
    for (const letter of option.slice(1)) {
      if (letter === "c") isText = true;
      else if (letter === "s") isInput = true;
      else if (letter === "o") {
        at += 1;
        options.push(args[at] ?? "");
      } else if (LETTERS.has(letter)) options.push(LETTERS.get(letter)!);
      else if (!"lin".includes(letter))
        return refuse(shell, `${name}: -${letter}: invalid option`, 2);
    }
  }
  const set = options.map((option) => `set -o ${option}; `).join("");
  const rest = args.slice(at);
  if (isText) {
    const [text, title = name, ...more] = rest;
    if (text === undefined) return refuse(shell, `${name}: -c: option requires an argument`, 2);
    return run(shell, title, set + text, more);
  }
  const [file, ...more] = rest;
  if (file === undefined || isInput) return run(shell, name, set + readInput(shell), rest);
  const stat = lookUp(shell.machine.fs, absolute(shell.folder, file));
  if (stat === undefined) return refuse(shell, `${name}: ${file}: No such file or directory`, 127);
  if (stat.kind === "folder") return refuse(shell, `${name}: ${file}: Is a directory`, 126);
  if (stat.content.slice(0, 1000).includes("\0"))
    return refuse(shell, `${name}: ${file}: cannot execute binary file`, 126);
  return run(shell, file, set + stat.content, more);
}

function readInput(shell: Shell): string {
  const stream = shell.streams.get(0);
  return stream === undefined ? "" : read(shell.machine, stream);
}

function refuse(shell: Shell, message: string, status: number): number {
  const error = shell.streams.get(2);
  if (error !== undefined) write(shell.machine, error, `${message}\n`);
  return status;
}
