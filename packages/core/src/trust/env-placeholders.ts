/**
 * Placeholders in settings: `{name}`, and `{env:NAME}` for an environment variable, so that records
 * hold the variable's name instead of its value. `{{` and `}}` stand for braces.
 */

const PLACEHOLDER = /\{\{|\}\}|\{(env:)?([A-Za-z_]\w*)\}/g;

/** What stands in braces. */
export interface Placeholder {
  readonly name: string;
  /** Whether it names an environment variable. */
  readonly isVariable: boolean;
}

/** The text with every placeholder replaced, in one pass: what replaces one is not read again. */
export function replacePlaceholders(text: string, value: (one: Placeholder) => string): string {
  return text.replace(PLACEHOLDER, (found, env: string | undefined, name: string | undefined) =>
    name === undefined ? found[0]! : value({ name, isVariable: env !== undefined }),
  );
}

/** The names in all `{env:NAME}` of a setting, at any depth, each once. */
export function environmentVariablesIn(value: unknown): readonly string[] {
  const names = new Set<string>();
  collect(value, names);
  return [...names];
}

function collect(value: unknown, names: Set<string>): void {
  if (typeof value === "string")
    replacePlaceholders(value, ({ name, isVariable }) => {
      if (isVariable) names.add(name);
      return "";
    });
  else if (typeof value === "object" && value !== null)
    for (const inner of Object.values(value)) collect(inner, names);
}
