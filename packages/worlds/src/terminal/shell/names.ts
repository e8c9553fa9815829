/** What a script calls, as far as that can be seen without running it. */
import { programs } from "../commands/programs.js";
import { builtins } from "./builtins.js";
import { parse } from "./parser.js";
import type { SimpleCommand, Word } from "./syntax.js";

/** Whether a shell here knows a command by this name. */
export const isCommand = (name: string): boolean =>
  builtins.has(name) || programs.has(name) || name === "bash" || name === "sh";

/** What a word always means; undefined where that depends on the machine. */
const fixed = (word: Word): string | undefined => {
  let text = "";
  for (const part of word) {
    if (part.type !== "text") return undefined;
    text += part.text;
  }
  return text;
};

/** The name that a command begins with, if it is a plain one. */
export const nameOf = ({ words }: SimpleCommand): string | undefined => words[0] && fixed(words[0]);

/** Names that a script calls and no shell here knows; a script that cannot be read is a `ShellSyntaxError`. */
export function unknownCommands(script: string): readonly string[] {
  const called = new Set<string>();
  const defined = new Set<string>();
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    const { type, name } = node as { readonly type?: unknown; readonly name?: unknown };
    if (type === "function") defined.add(String(name));
    if (type === "simple") {
      const word = nameOf(node as SimpleCommand);
      // Paths and patterns may lead to files of the task's own.
      if (word !== undefined && /^[\w.-]+$/.test(word)) called.add(word);
    }
    for (const inner of Object.values(node)) visit(inner);
  };
  visit(parse(script));
  return [...called].filter((name) => !isCommand(name) && !defined.has(name));
}
