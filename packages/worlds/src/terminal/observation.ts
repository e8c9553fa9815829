/** What an agent is shown of a command: its output, cut in the middle where it is long, and how it ended. */
import type { CommandResult } from "./shell/session.js";

/** The text, or its beginning and end with a note of what was left out between them. */
export function cutMiddle(text: string, longest: number): string {
  if (text.length <= longest) return text;
  // Not in the middle of a character that takes two units.
  const isSplit = (at: number): boolean => /^[\uDC00-\uDFFF]/.test(text.slice(at, at + 1));
  const half = Math.floor(longest / 2);
  const head = isSplit(half) ? half - 1 : half;
  const tail = text.length - (longest - half);
  const from = isSplit(tail) ? tail + 1 : tail;
  const left = (from - head).toLocaleString("en");
  return `${text.slice(0, head)}\n[… ${left} characters left out …]\n${text.slice(from)}`;
}

/** A command's output and exit code. */
export function observationOf(
  { output, code, stopped }: Pick<CommandResult, "output" | "code" | "stopped">,
  longest: number,
): string {
  const text = cutMiddle(output.replace(/\n+$/, ""), longest);
  const end =
    stopped !== undefined ? `[stopped: ${stopped}]` : code !== 0 ? `[exit code ${code}]` : "";
  const lines = [text, end].filter((line) => line !== "");
  return lines.length === 0 ? "[no output]" : lines.join("\n");
}

/** What is shown at first: where the shell is, and what lies there. */
export function openingOf(folder: string, names: readonly string[], longest: number): string {
  const listed = names.length === 0 ? "nothing" : names.join("  ");
  return cutMiddle(`In ${folder}: ${listed}`, longest);
}

/** Ends a session, whereupon it is scored. */
export const isExit = (command: string): boolean => /^\s*exit(\s+\d+)?\s*;?\s*$/.test(command);

/** What is shown after the end. */
export const verdictText = (success: boolean): string =>
  success ? "The tests pass." : "The tests fail.";
