/** Carries out the commands that hold others: conditions, loops, groups. */
import { evaluate as arithmetic } from "./arithmetic.js";
import { holds } from "./conditions.js";
import { expandPattern, expandText, expandWords } from "./expand.js";
import { spend } from "./machine.js";
import { matches } from "./pattern.js";
import { LoopJump, type Shell, setVariable, subshell } from "./shell.js";
import type { CompoundBody, Script } from "./syntax.js";

type RunScript = (shell: Shell, script: Script) => number;

/** How commands are run. */
interface Runs {
  readonly runScript: RunScript;
  /** Runs something in a shell of its own. */
  within(inner: Shell, run: () => unknown): number;
}

function asked(shell: Shell, script: Script, runScript: RunScript): boolean {
  shell.asked += 1;
  try {
    return runScript(shell, script) === 0;
  } finally {
    shell.asked -= 1;
  }
}

export function runCompound(shell: Shell, inner: CompoundBody, { runScript, within }: Runs): void {
  switch (inner.type) {
    case "group":
      runScript(shell, inner.body);
      break;
    case "subshell": {
      const child = subshell(shell);
      shell.status = within(child, () => runScript(child, inner.body));
      break;
    }
    case "if": {
      const branch = inner.branches.find(({ condition }) => asked(shell, condition, runScript));
      shell.status = 0;
      const body = branch?.body ?? inner.otherwise;
      if (body !== undefined) runScript(shell, body);
      break;
    }
    case "loop": {
      let status = 0;
      rounds(shell, () => {
        if (asked(shell, inner.condition, runScript) === inner.until) return false;
        // Kept here, because the condition sets a status, too.
        status = runBody(
          () => runScript(shell, inner.body),
          (at) => {
            status = at;
          },
        );
        return true;
      });
      shell.status = status;
      break;
    }
    case "for": {
      const words = inner.words === undefined ? shell.positional : expandWords(shell, inner.words);
      let at = 0;
      shell.status = 0;
      rounds(shell, () => {
        if (at >= words.length) return false;
        setVariable(shell, inner.name, words[at]!);
        at += 1;
        runScript(shell, inner.body);
        return true;
      });
      break;
    }
    case "count": {
      const [start, condition, step] = inner.parts.map(
        (part) => () => arithmetic(shell, expandText(shell, part)),
      );
      const isEmpty =
        inner.parts[1]!.length === 0 || expandText(shell, inner.parts[1]!).trim() === "";
      start!();
      shell.status = 0;
      let isFirst = true;
      rounds(shell, () => {
        if (!isFirst) step!();
        isFirst = false;
        if (!isEmpty && condition!() === 0n) return false;
        runScript(shell, inner.body);
        return true;
      });
      break;
    }
    case "case":
      runCase(shell, inner, runScript);
      break;
    case "arithmetic":
      shell.status = arithmetic(shell, expandText(shell, inner.expression)) === 0n ? 1 : 0;
      break;
    case "test":
      shell.status = holds(shell, inner.test) ? 0 : 1;
      break;
  }
}

function runBody(run: () => number, onJump: (status: number) => void): number {
  try {
    return run();
  } catch (error) {
    if (error instanceof LoopJump) onJump(0);
    throw error;
  }
}

/** Goes round until there is no more, or a jump leaves. */
function rounds(shell: Shell, round: () => boolean): void {
  for (;;) {
    spend(shell.machine, 2);
    try {
      if (!round()) return;
    } catch (error) {
      if (!(error instanceof LoopJump)) throw error;
      shell.status = 0;
      error.levels -= 1;
      if (error.levels > 0) throw error;
      if (!error.goesOn) return;
    }
  }
}

function runCase(
  shell: Shell,
  { word, items }: CompoundBody & { type: "case" },
  runScript: RunScript,
): void {
  const text = expandText(shell, word);
  shell.status = 0;
  let fallsThrough = false;
  for (const { patterns, body, end } of items) {
    const fits =
      fallsThrough ||
      patterns.some((pattern) => matches(shell.machine, expandPattern(shell, pattern), text));
    if (!fits) continue;
    runScript(shell, body);
    if (end === ";;") return;
    fallsThrough = end === ";&";
  }
}
