/** What `test`, `[` and `[[` ask of files and texts. */
import { evaluate } from "./arithmetic.js";
import { expandPattern, expandText } from "./expand.js";
import { absolute, lookUp } from "./file-system.js";
import { matches } from "./pattern.js";
import { matcherOf } from "./regex.js";
import { type Shell, ShellError } from "./shell.js";
import type { TestNode } from "./syntax.js";

/** The answer to an operator with one operand. */
export function askOne(shell: Shell, operator: string, operand: string): boolean {
  const { fs } = shell.machine;
  const path = operand === "" ? "" : absolute(shell.folder, operand);
  const stat = (follow = true) => lookUp(fs, path, follow);
  switch (operator) {
    case "-n":
      return operand !== "";
    case "-z":
      return operand === "";
    case "-v": {
      const name = operand.replace(/\[.*/, "");
      return shell.variables.has(name) && shell.variables.get(name)!.value !== undefined
        ? true
        : shell.variables.get(name)?.elements !== undefined;
    }
    case "-o":
      return shell.options.has(operand);
    case "-t":
      return false;
    case "-e":
    case "-a":
      return stat() !== undefined;
    case "-f":
      return stat()?.kind === "file";
    case "-d":
      return stat()?.kind === "folder";
    case "-L":
    case "-h":
      return stat(false)?.kind === "link";
    case "-c":
      return stat()?.kind === "device";
    case "-s": {
      const there = stat();
      return (
        there !== undefined &&
        (there.kind === "folder" || there.content !== "" || there.program !== undefined)
      );
    }
    case "-r":
    case "-w":
    case "-O":
    case "-G":
    case "-N":
      return stat() !== undefined;
    case "-x": {
      const there = stat();
      return there !== undefined && (there.kind === "folder" || (there.mode & 0o111) !== 0);
    }
    case "-k":
    case "-u":
    case "-g": {
      const bit = { "-k": 0o1000, "-u": 0o4000, "-g": 0o2000 }[operator];
      return ((stat()?.mode ?? 0) & bit) !== 0;
    }
    default:
      return false;
  }
}

/** The answer to an operator between two texts; undefined if it is none. */
export function askTwo(
  shell: Shell,
  operator: string,
  left: string,
  right: string,
  number: (text: string) => bigint,
): boolean | undefined {
  const stat = (path: string) => lookUp(shell.machine.fs, absolute(shell.folder, path));
  switch (operator) {
    case "=":
    case "==":
      return left === right;
    case "!=":
      return left !== right;
    case "<":
      return left < right;
    case ">":
      return left > right;
    case "-eq":
      return number(left) === number(right);
    case "-ne":
      return number(left) !== number(right);
    case "-lt":
      return number(left) < number(right);
    case "-le":
      return number(left) <= number(right);
    case "-gt":
      return number(left) > number(right);
    case "-ge":
      return number(left) >= number(right);
    case "-nt":
      return (stat(left)?.modified ?? -1) > (stat(right)?.modified ?? -1);
    case "-ot":
      return (stat(left)?.modified ?? -1) < (stat(right)?.modified ?? -1);
    case "-ef":
      return stat(left) !== undefined && stat(left)!.number === stat(right)?.number;
    default:
      return undefined;
  }
}

/** Whether a condition of `[[ … ]]` holds. */
export function holds(shell: Shell, test: TestNode): boolean {
  switch (test.type) {
    case "not":
      return !holds(shell, test.operand);
    case "and":
      return holds(shell, test.left) && holds(shell, test.right);
    case "or":
      return holds(shell, test.left) || holds(shell, test.right);
    case "unary":
      return askOne(shell, test.operator, expandText(shell, test.operand));
    case "binary": {
      const left = expandText(shell, test.left);
      const { operator } = test;
      if (operator === "==" || operator === "!=")
        return (
          matches(shell.machine, expandPattern(shell, test.right), left) === (operator === "==")
        );
      if (operator === "=~") return fitsExpression(shell, left, test);
      return askTwo(shell, operator, left, expandText(shell, test.right), (text) =>
        evaluate(shell, text),
      )!;
    }
  }
}

function fitsExpression(
  shell: Shell,
  left: string,
  { right }: TestNode & { type: "binary" },
): boolean {
  const source = right
    .map((part) => {
      const text = expandText(shell, [part]);
      return part.quoted ? text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&") : text;
    })
    .join("");
  let found: RegExpExecArray | null;
  try {
    found = matcherOf(source, { extended: true }).exec(left);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new ShellError(`[[: invalid regular expression \`${source}'`, 2);
  }
  const elements = new Map((found ?? []).map((text, n) => [String(n), text ?? ""]));
  shell.variables.set("BASH_REMATCH", { value: undefined, elements });
  return found !== null;
}
