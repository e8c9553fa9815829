/** A command that is loaded when it is called: all of them take most of a second to load. */
import type { Command } from "./command.js";

/** A command's name, and how to load it. */
export interface CommandEntry {
  readonly name: string;
  load(): Promise<Command>;
}

/** The command that a line starts with. Names have one to three words; the longest one counts. */
export function findCommand(
  commands: readonly CommandEntry[],
  line: readonly string[],
): CommandEntry | undefined {
  const names = [3, 2, 1].map((words) => line.slice(0, words).join(" "));
  return names.flatMap((name) => commands.filter((command) => command.name === name))[0];
}

/** Loads several commands. */
export function loadCommands(commands: readonly CommandEntry[]): Promise<readonly Command[]> {
  return Promise.all(commands.map((command) => command.load()));
}
