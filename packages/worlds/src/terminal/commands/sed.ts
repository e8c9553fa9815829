/** `sed`. */
import * as files from "../shell/file-system.js";
import { spend } from "../shell/machine.js";
import type { Call } from "../shell/shell.js";
import { complain, Failure, options, out, pathOf, readNamed } from "./call.js";
import { expression, isChosen, type Line, type State } from "./sed-address.js";
import { parseSed, type SedCommand } from "./sed-script.js";
import { filled } from "./sed-substitute.js";
export function sed(call: Call): number {
  const args = call.args.flatMap((one) =>
    /^-[nErs]*i.+/.test(one) && !one.startsWith("--") ? [one] : [one],
  );
  const isInPlace = args.some((one) => /^-[nErsz]*i/.test(one) || one.startsWith("--in-place"));
  const suffix = args
    .map((one) => /^-[nErsz]*i(.+)$|^--in-place=(.+)$/.exec(one))
    .find((one) => one !== null);
  const plain = args
    .map((one) => (/^-[nErsz]*i/.test(one) ? one.replace(/i.*$/, "") : one))
    .filter((one) => one !== "-" && !one.startsWith("--in-place"));
  const dashes = args.filter((one) => one === "-");
  const given = options({ ...call, args: [...plain, ...dashes] }, "nEre:f:szul:", {
    quiet: "n",
    silent: "n",
    "regexp-extended": "E",
    expression: "e",
    file: "f",
    separate: "s",
  });
  const operands = [...given.operands];
  const scripts = given.values("e").map((one) => one);
  for (const name of given.values("f")) scripts.push(readNamed(call, name).replace(/^#!.*\n/, ""));
  if (scripts.length === 0) {
    const first = operands.shift();
    if (first === undefined)
      throw new Failure("Usage: sed [OPTION]... {script-only-if-no-other-script} [input-file]...");
    scripts.push(first);
  }
  const script = scripts.join("\n");
  const commands = parseSed(script.replace(/^#n\n/, ""), given.has("E") || given.has("r"));
  const fresh = (): State => ({
    call,
    commands,
    quiet: given.has("n") || /^#n\n/.test(script),
    lines: [],
    next: 0,
    number: 0,
    pattern: "",
    ended: true,
    hold: "",
    last: undefined,
    ranges: new Map(),
    output: [],
    after: [],
    quit: undefined,
    written: new Map(),
  });
  let status = 0;
  const texts: { readonly name: string; readonly text: string }[] = [];
  for (const name of operands.length > 0 ? operands : ["-"])
    try {
      texts.push({ name, text: readNamed(call, name) });
    } catch (error) {
      const problem = (error as Error).message;
      complain(
        call,
        problem === "Is a directory"
          ? isInPlace
            ? `couldn't edit ${name}: not a regular file`
            : `couldn't read ${name}: ${problem}`
          : `can't read ${name}: ${problem}`,
      );
      status = problem === "Is a directory" && isInPlace ? 4 : 2;
    }
  if (isInPlace || given.has("s")) {
    for (const { name, text } of texts) {
      const state = fresh();
      run(state, [text]);
      const edited = state.output.join("");
      if (isInPlace) {
        const { fs } = call.shell.machine;
        const path = pathOf(call, name);
        const ending = suffix?.[1] ?? suffix?.[2];
        if (ending !== undefined)
          files.writeFile(
            fs,
            ending.includes("*") ? pathOf(call, ending.replaceAll("*", name)) : `${path}${ending}`,
            text,
          );
        if (edited !== text || state.output.length > 0) files.writeFile(fs, path, edited);
      } else out(call, edited);
      finish(state);
      if (state.quit !== undefined) return state.quit;
    }
    return status;
  }
  const state = fresh();
  run(
    state,
    texts.map(({ text }) => text),
  );
  out(call, state.output.join(""));
  finish(state);
  return state.quit ?? status;
}

function finish({ call, written }: State): void {
  for (const [name, text] of written) {
    if (name === "/dev/stdout") out(call, text);
    else files.writeFile(call.shell.machine.fs, pathOf(call, name), text);
  }
}

function linesFrom(texts: readonly string[]): readonly Line[] {
  return texts.flatMap((text) => {
    const parts = text.split("\n");
    const last = parts.pop()!;
    const lines = parts.map((part): Line => ({ text: part, ended: true }));
    return last === "" ? lines : [...lines, { text: last, ended: false }];
  });
}

function run(state: State, texts: readonly string[]): void {
  state.lines = linesFrom(texts);
  let restarts = false;
  while (restarts || readNext(state)) {
    restarts = cycle(state);
    if (!restarts) flushAfter(state);
    if (state.quit !== undefined) return;
  }
}

function readNext(state: State): boolean {
  const line = state.lines[state.next];
  if (line === undefined) return false;
  state.next += 1;
  state.number += 1;
  state.pattern = line.text;
  state.ended = line.ended;
  return true;
}

function print(state: State, text: string): void {
  const last = state.output.length - 1;
  // What had no line's end gets one when something follows.
  if (last >= 0 && !state.output[last]!.endsWith("\n")) state.output[last] += "\n";
  state.output.push(state.ended ? `${text}\n` : text);
}

function flushAfter(state: State): void {
  for (const text of state.after) {
    const last = state.output.length - 1;
    if (last >= 0 && !state.output[last]!.endsWith("\n")) state.output[last] += "\n";
    state.output.push(text);
  }
  state.after = [];
}

/** Runs the commands on a line; true: again, without reading another. */
function cycle(state: State): boolean {
  const { commands } = state;
  let replaced = false;
  for (let at = 0; at < commands.length; at++) {
    const command = commands[at]!;
    spend(state.call.shell.machine, 0.5 + state.pattern.length / 2000);
    if (isChosen(state, command) === command.negated) {
      if (command.letter === "{") at = command.target;
      continue;
    }
    switch (command.letter) {
      case "s":
        if (substitute(state, command)) replaced = true;
        break;
      case "d":
        return false;
      case "D": {
        const end = state.pattern.indexOf("\n");
        if (end < 0) return false;
        state.pattern = state.pattern.slice(end + 1);
        return true;
      }
      case "p":
        print(state, state.pattern);
        break;
      case "P":
        print(state, state.pattern.split("\n")[0]!);
        break;
      case "n":
        if (state.next >= state.lines.length) {
          if (!state.quiet) print(state, state.pattern);
          return false;
        }
        if (!state.quiet) print(state, state.pattern);
        flushAfter(state);
        readNext(state);
        break;
      case "N": {
        if (state.next >= state.lines.length) {
          if (!state.quiet) print(state, state.pattern);
          return false;
        }
        const before = state.pattern;
        flushAfter(state);
        readNext(state);
        state.pattern = `${before}\n${state.pattern}`;
        break;
      }
      case "g":
        state.pattern = state.hold;
        break;
      case "G":
        state.pattern += `\n${state.hold}`;
        break;
      case "h":
        state.hold = state.pattern;
        break;
      case "H":
        state.hold += `\n${state.pattern}`;
        break;
      case "x":
        [state.pattern, state.hold] = [state.hold, state.pattern];
        break;
      case "=":
        state.output.push(`${state.number}\n`);
        break;
      case "l":
        state.output.push(
          `${JSON.stringify(state.pattern).slice(1, -1).replaceAll('\\"', '"')}$\n`,
        );
        break;
      case "z":
        state.pattern = "";
        break;
      case "a":
        state.after.push(command.text);
        break;
      case "i": {
        const last = state.output.length - 1;
        if (last >= 0 && !state.output[last]!.endsWith("\n")) state.output[last] += "\n";
        state.output.push(command.text);
        break;
      }
      case "c":
        if (command.to === undefined || command.negated || state.ranges.get(command) !== -1)
          state.output.push(command.text);
        return false;
      case "r":
        state.after.push(readOr(state.call, command.text));
        break;
      case "w":
        state.written.set(
          command.text,
          `${state.written.get(command.text) ?? ""}${state.pattern}\n`,
        );
        break;
      case "y":
        state.pattern = Array.from(state.pattern, (one) => command.map!.get(one) ?? one).join("");
        break;
      case "q":
        state.quit = Number(command.text || 0);
        if (!state.quiet) print(state, state.pattern);
        flushAfter(state);
        return false;
      case "Q":
        state.quit = Number(command.text || 0);
        return false;
      case "b":
        at = command.target - (command.target === commands.length ? 1 : 0);
        if (command.target === commands.length) at = commands.length;
        break;
      case "t":
        if (replaced) at = command.target;
        replaced = false;
        break;
      case "T":
        if (!replaced) at = command.target;
        replaced = false;
        break;
    }
    if (state.pattern.length + state.hold.length > 4 * 2 ** 20)
      throw new Failure("couldn't allocate memory", 4);
  }
  if (!state.quiet) print(state, state.pattern);
  return false;
}

function readOr(call: Call, name: string): string {
  try {
    return readNamed(call, name);
  } catch {
    return "";
  }
}

function substitute(state: State, command: SedCommand): boolean {
  const matcher = expression(state, command.matcher);
  const { all, nth, prints, file } = command.flags!;
  const { pattern } = state;
  let result = "";
  let at = 0;
  let count = 0;
  let from = 0;
  let done = false;
  while (from <= pattern.length) {
    const found = matcher.exec(pattern, from);
    if (found === null) break;
    const isEmptyAfter = found[0] === "" && count > 0 && found.index === at && at > 0;
    if (!isEmptyAfter) count += 1;
    const end = found.index + found[0].length;
    if (!isEmptyAfter && (count === nth || (all && count > nth))) {
      result += pattern.slice(at, found.index) + filled(command.replacement!, found);
      at = end;
      done = true;
      spend(state.call.shell.machine, 0.3);
      if (!all) break;
    }
    from = found[0] === "" ? end + 1 : end;
  }
  if (!done) return false;
  state.pattern = result + pattern.slice(at);
  if (prints) print(state, state.pattern);
  if (file !== undefined)
    state.written.set(file, `${state.written.get(file) ?? ""}${state.pattern}\n`);
  return true;
}
