import { assign } from "./assign.js";
import { builtins } from "./builtins.js";
import { runCompound } from "./compound.js";
import { expandWords } from "./expand.js";
import { lookUp, removeFile } from "./file-system.js";
import { FileError } from "./inodes.js";
import { Stopped, spend } from "./machine.js";
import { parse } from "./parser.js";
import { runNamed } from "./programs.js";
import { redirected } from "./redirect.js";
import {
  DEEPEST_SHELL,
  Exit,
  LoopJump,
  Return,
  type Runner,
  type Shell,
  ShellError,
  subshell,
  type Variable,
} from "./shell.js";
import { BrokenPipe, nothing, passCut, pipeStream, textStream, write } from "./streams.js";
import {
  type Chain,
  type Command,
  type Pipeline,
  type Script,
  ShellSyntaxError,
  type SimpleCommand,
} from "./syntax.js";

/** What a command costs, in the machine's microseconds. */
const COMMAND = 8;

/** How commands inside commands are run. */
export const runner: Runner = {
  execute: (shell, words) => invoke(shell, words),
  evaluate: evaluateText,
  output: outputOf,
};

/** Writes a message of the shell's. */
function complain(shell: Shell, message: string): void {
  const error = shell.streams.get(2);
  if (error !== undefined)
    write(shell.machine, error, `${shell.name}: line ${shell.line}: ${message}\n`);
}

/** Runs a text; what cannot be read is complained about. */
function evaluateText(shell: Shell, text: string): number {
  let script: Script;
  try {
    script = parse(text);
  } catch (error) {
    if (!(error instanceof ShellSyntaxError)) throw error;
    shell.line = error.line;
    complain(shell, error.message);
    if (error.message.includes("unexpected token"))
      complain(shell, `\`${text.split("\n")[error.line - 1] ?? ""}'`);
    shell.status = 2;
    return 2;
  }
  return runScript(shell, script);
}

/** Runs commands one after the other. */
function runScript(shell: Shell, script: Script): number {
  for (const chain of script) {
    if (chain.background) runInBackground(shell, chain);
    else runChain(shell, chain);
  }
  return shell.status;
}

function runInBackground(shell: Shell, chain: Chain): void {
  const inner = subshell(shell);
  const { time } = shell.machine;
  inner.streams.set(0, nothing);
  within(inner, () => runChain(inner, chain));
  // It ran while the shell went on.
  shell.machine.time = Math.min(shell.machine.time, time + 1);
  shell.background = inner.process;
  shell.status = 0;
}

function runChain(shell: Shell, { pipelines, operators }: Chain): void {
  pipelines.forEach((pipeline, n) => {
    const operator = operators[n - 1];
    if (operator === "&&" && shell.status !== 0) return;
    if (operator === "||" && shell.status === 0) return;
    const isAsked = n < pipelines.length - 1 || pipeline.negated;
    if (isAsked) shell.asked += 1;
    try {
      runPipeline(shell, pipeline);
    } finally {
      if (isAsked) shell.asked -= 1;
    }
    if (!isAsked) checkFailure(shell, pipeline);
  });
}

/** Ends the shell after a failure, where `set -e` asks for that. */
function checkFailure(shell: Shell, { commands }: Pipeline): void {
  if (shell.status === 0 || shell.asked > 0 || !shell.options.has("errexit")) return;
  const [only] = commands;
  const isPassedOn =
    commands.length === 1 &&
    only!.type === "compound" &&
    only!.inner.type !== "subshell" &&
    only!.inner.type !== "test" &&
    only!.inner.type !== "arithmetic";
  if (!isPassedOn) throw new Exit(shell.status);
}

function runPipeline(shell: Shell, { commands, negated }: Pipeline): void {
  if (commands.length === 1) {
    runCommand(shell, commands[0]!);
    shell.pipeStatus.splice(0, shell.pipeStatus.length, shell.status);
  } else runStages(shell, commands);
  if (negated) shell.status = shell.status === 0 ? 1 : 0;
}

/**
 * Each command runs to its end before the next begins; a pipe that is full ends the one that fills
 * it, and all of them if its reader wanted more.
 */
function runStages(shell: Shell, commands: readonly Command[]): void {
  const statuses: number[] = [];
  let input = shell.streams.get(0) ?? nothing;
  commands.forEach((command, n) => {
    const inner = subshell(shell);
    const output = n < commands.length - 1 ? pipeStream() : undefined;
    inner.streams.set(0, input);
    if (output !== undefined) inner.streams.set(1, output);
    statuses.push(
      within(inner, () => {
        runCommand(inner, command);
        return inner.status;
      }),
    );
    passCut(input, inner.streams.get(1));
    if (output !== undefined) input = textStream(output.text, output.isCut);
  });
  shell.pipeStatus.splice(0, shell.pipeStatus.length, ...statuses);
  const failed = statuses.findLast((status) => status !== 0);
  shell.status = shell.options.has("pipefail") ? (failed ?? 0) : statuses.at(-1)!;
}

/** Runs something in a shell of its own; what ends that shell ends nothing else. */
export function within(inner: Shell, run: () => unknown): number {
  try {
    run();
  } catch (error) {
    if (error instanceof Exit || error instanceof Return) inner.status = error.status;
    else if (error instanceof BrokenPipe) inner.status = 141;
    else if (error instanceof ShellError) fail(inner, error);
    else if (!(error instanceof LoopJump)) throw error;
  }
  runTrap(inner, "EXIT");
  return inner.status;
}

function fail(shell: Shell, error: ShellError): void {
  complain(shell, error.message);
  shell.status = error.status;
}

/** Runs what a shell was to do at its end. */
function runTrap(shell: Shell, name: string): void {
  const text = shell.traps.get(name);
  if (text === undefined) return;
  shell.traps.delete(name);
  const { status } = shell;
  try {
    evaluateText(shell, text);
    shell.status = status;
  } catch (error) {
    if (error instanceof Exit) shell.status = error.status;
    else throw error;
  }
}

/** What commands write, without the lines' ends at its end. */
function outputOf(shell: Shell, script: Script): string {
  const inner = subshell(shell);
  const output = { ...pipeStream(), isPipe: false };
  inner.streams.set(1, output);
  shell.status = within(inner, () => runScript(inner, script));
  return output.text.replace(/\n+$/, "").replaceAll("\0", "");
}

function runCommand(shell: Shell, command: Command): void {
  spend(shell.machine, COMMAND);
  try {
    if (command.type === "function") {
      shell.functions.set(command.name, command.body);
      shell.status = 0;
    } else if (command.type === "simple") runSimple(shell, command);
    else {
      shell.line = command.line;
      const { streams } = shell;
      try {
        if (command.redirects.length > 0) shell.streams = redirected(shell, command.redirects);
        runCompound(shell, command.inner, { runScript, within });
      } finally {
        shell.streams = streams;
      }
    }
  } catch (error) {
    if (error instanceof ShellError && !error.isFatal) fail(shell, error);
    else if (error instanceof ShellError) {
      fail(shell, error);
      throw new Exit(error.status);
    } else if (error instanceof FileError) fail(shell, new ShellError(error.message));
    else throw error;
  }
}

function runSimple(shell: Shell, command: SimpleCommand): void {
  shell.line = command.line;
  const before = shell.status;
  shell.status = 0;
  const { assignments, redirects } = command;
  const hasSpecial = command.words.length > 0;
  if (!hasSpecial) {
    for (const assignment of assignments) assign(shell, assignment);
    if (redirects.length > 0) redirected(shell, redirects);
    return;
  }
  // `$?` in the words is that of the command before.
  shell.status = before;
  const words = expandWords(shell, command.words);
  const { streams } = shell;
  if (words.length === 0) shell.status = 0;
  const [name] = words;
  const saved = new Map(assignments.map((one) => [one.name, shell.variables.get(one.name)]));
  try {
    for (const assignment of assignments) {
      assign(shell, assignment);
      const variable = shell.variables.get(assignment.name)!;
      shell.variables.set(assignment.name, { ...variable, exported: true });
    }
    if (redirects.length > 0) shell.streams = redirected(shell, redirects);
    if (shell.options.has("xtrace") && words.length > 0) trace(shell, words);
    if (words.length > 0) shell.status = invoke(shell, words);
    for (const array of command.arrays) assign(shell, array);
  } finally {
    if (name === "exec" && words.length === 1) {
      if (redirects.length === 0) shell.streams = streams;
    } else {
      shell.streams = streams;
      dropSubstitutions(shell, words);
    }
    for (const [variable, old] of saved)
      if (old === undefined) shell.variables.delete(variable);
      else shell.variables.set(variable, old);
  }
}

/** Removes what `<(…)` made for a command. */
function dropSubstitutions(shell: Shell, words: readonly string[]): void {
  for (const word of words)
    if (word.startsWith("/dev/fd/") && lookUp(shell.machine.fs, word)?.kind === "file")
      removeFile(shell.machine.fs, word);
}

function trace(shell: Shell, words: readonly string[]): void {
  const shown = words.map((word) =>
    /^[\w./:=+,@%-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`,
  );
  const error = shell.streams.get(2);
  if (error !== undefined) write(shell.machine, error, `+ ${shown.join(" ")}\n`);
}

/** Runs a function, a builtin or a program by its name. */
function invoke(shell: Shell, words: readonly string[]): number {
  const [name, ...args] = words as [string, ...string[]];
  const body = shell.functions.get(name);
  if (body !== undefined) return callFunction(shell, name, body, args);
  const builtin = builtins.get(name);
  if (builtin !== undefined) return builtin({ shell, name, args });
  return runNamed(shell, name, args, runScriptText);
}

function callFunction(shell: Shell, name: string, body: Command, args: readonly string[]): number {
  if (shell.depth > DEEPEST_SHELL) throw new Stopped("its functions are nested too deeply");
  const { positional } = shell;
  const scope = new Map<string, Variable | undefined>();
  shell.scopes.push(scope);
  scope.set("FUNCNAME", shell.variables.get("FUNCNAME"));
  shell.variables.set("FUNCNAME", { value: name });
  shell.positional = args;
  shell.depth += 1;
  try {
    runCommand(shell, body);
  } catch (error) {
    if (!(error instanceof Return)) throw error;
    shell.status = error.status;
  } finally {
    shell.depth -= 1;
    shell.positional = positional;
    shell.scopes.pop();
    for (const [name, old] of scope)
      if (old === undefined) shell.variables.delete(name);
      else shell.variables.set(name, old);
  }
  return shell.status;
}

/** Runs a script's text in a shell that has only what is exported. */
function runScriptText(shell: Shell, name: string, text: string, args: readonly string[]): number {
  const inner = subshell(shell);
  for (const [variable, { exported }] of inner.variables)
    if (!exported) inner.variables.delete(variable);
  inner.functions.clear();
  inner.options.clear();
  inner.scopes.length = 0;
  inner.asked = 0;
  inner.status = 0;
  inner.name = name;
  inner.positional = args;
  inner.line = 1;
  return within(inner, () => evaluateText(inner, text));
}
