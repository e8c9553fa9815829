/** `{name}` in the settings of servers: fields of the task, and the episode's own folder. */
import { EnvError } from "../env.js";

/** The text with its placeholders filled; `{{` and `}}` stand for braces. */
export function fill(
  text: string,
  values: Readonly<Record<string, unknown>>,
  where: string,
): string {
  return text.replace(/\{\{|\}\}|\{([A-Za-z_]\w*)\}/g, (found, name: string | undefined) => {
    if (name === undefined) return found[0]!;
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
      return String(value);
    throw new EnvError(
      `${where}: there is no value for {${name}}; the task has ${Object.keys(values).join(", ")}. Write {{${name}}} for the braces themselves`,
    );
  });
}
