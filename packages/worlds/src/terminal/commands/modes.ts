/** Commands about who may do what with files. */
import * as files from "../shell/file-system.js";
import type { Call } from "../shell/shell.js";
import { each, Failure, options } from "./call.js";

/** A mode as chmod reads it: octal, or `u+x,go-w`. */
export function modeOf(text: string, old: number, isFolder: boolean): number {
  if (/^[0-7]{1,4}$/.test(text)) return Number.parseInt(text, 8);
  let mode = old;
  for (const clause of text.split(",")) {
    const found = /^([ugoa]*)([-+=])([rwxXst]*)$/.exec(clause);
    if (found === null) throw new Failure(`invalid mode: '${text}'`);
    const [, who, operator, what] = found as unknown as [string, string, string, string];
    const all = who === "" || who.includes("a");
    for (const [letter, shift] of [
      ["u", 6],
      ["g", 3],
      ["o", 0],
    ] as const) {
      if (!all && !who.includes(letter)) continue;
      let bits =
        (what.includes("r") ? 4 : 0) | (what.includes("w") ? 2 : 0) | (what.includes("x") ? 1 : 0);
      if (what.includes("X") && (isFolder || (old & 0o111) !== 0)) bits |= 1;
      if (who === "" && letter !== "u") bits &= 5;
      if (operator === "=") mode = (mode & ~(7 << shift)) | (bits << shift);
      else if (operator === "+") mode |= bits << shift;
      else mode &= ~(bits << shift);
    }
  }
  return mode;
}

export function chmod(call: Call): number {
  // A mode such as -x looks like an option.
  const isMode = (one: string): boolean => /^-[rwxXst]+$/.test(one);
  const modes = call.args.filter(isMode);
  const given = options({ ...call, args: call.args.filter((one) => !isMode(one)) }, "RvfcS", {
    recursive: "R",
    verbose: "v",
  });
  const { fs } = call.shell.machine;
  const [mode, ...names] = [...modes, ...given.operands];
  if (mode === undefined || names.length === 0)
    throw new Failure(mode === undefined ? "missing operand" : `missing operand after '${mode}'`);
  const change = (path: string): void => {
    const stat = files.statFile(fs, path);
    files.changeMode(fs, path, modeOf(mode, stat.mode, stat.kind === "folder"));
    if (given.has("R") && stat.kind === "folder")
      for (const name of files.listFolder(fs, path)) change(`${path}/${name}`);
  };
  return each(call, names, (name, problem) => `cannot access '${name}': ${problem}`, change);
}

export function chown(call: Call): number {
  const given = options(call, "Rvf", { recursive: "R" });
  return each(
    call,
    given.operands.slice(1),
    (name, problem) => `cannot access '${name}': ${problem}`,
    (path) => {
      files.statFile(call.shell.machine.fs, path);
    },
  );
}
