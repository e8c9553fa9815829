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

/**
 * Loads the worlds that a command may open. `given` is its line and its file; the `runs` that they
 * name may be of any world.
 */
export async function loadCommandWorlds(
  { worlds = "any" }: Pick<Command, "worlds">,
  given: unknown,
  runs: readonly string[] = [],
): Promise<void> {
  if (worlds === "none") return;
  const { DEFAULT_WORLD } = await import("./worlds.js");
  const { envNames, loadEnvKinds } = await import("@pawl/core/envs/registry.js");
  const text = JSON.stringify(given);
  const isNamed = (name: string): boolean => name === DEFAULT_WORLD || text.includes(name);
  const all = worlds === "any" || runs.length > 0;
  await loadEnvKinds(all ? envNames() : envNames().filter(isNamed));
}
