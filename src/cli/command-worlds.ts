/** The worlds of a command: loaded before its settings are read, which depend on them. */
import type { Command } from "./command.js";

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
  const { envNames, loadEnvKinds } = await import("../envs/registry.js");
  const text = JSON.stringify(given);
  const isNamed = (name: string): boolean => name === DEFAULT_WORLD || text.includes(name);
  const all = worlds === "any" || runs.length > 0;
  await loadEnvKinds(all ? envNames() : envNames().filter(isNamed));
}
