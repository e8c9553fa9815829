/** The environments that can be opened by name. */
import { didYouMean } from "../text/nearest.js";
import { EnvError, type EnvKind } from "./env.js";
import { household } from "./household/household.js";

const kinds = new Map<string, EnvKind>([[household.name, household]]);

/** All kinds of environments, in the order in which they were registered. */
export function envKinds(): readonly EnvKind[] {
  return [...kinds.values()];
}

/** The kind with this name; an unknown name is an error that lists those there are. */
export function findEnvKind(name: string): EnvKind {
  const kind = kinds.get(name);
  if (kind !== undefined) return kind;
  throw new EnvError(
    `there is no environment "${name}"; there are: ${[...kinds.keys()].join(", ")}.${didYouMean(name, kinds.keys())}`,
  );
}

/** Adds an environment of one's own, so that every command and configuration can name it. */
export function registerEnv(kind: EnvKind): void {
  if (kinds.has(kind.name)) {
    throw new EnvError(
      `an environment named "${kind.name}" is already registered; choose another name`,
    );
  }
  kinds.set(kind.name, kind);
}
