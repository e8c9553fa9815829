/** The kinds of environments that can be opened by name: the built-in ones and users' own. */
import { didYouMean } from "../text/nearest.js";
import { agentgym } from "./agentgym/agentgym.js";
import { alfworld } from "./alfworld/alfworld.js";
import { desk } from "./desk/desk.js";
import { EnvError, type EnvKind } from "./env.js";
import { household } from "./household/household.js";
import { mcp } from "./mcp/mcp.js";
import { openenv } from "./openenv/openenv.js";
import { scienceworld } from "./scienceworld/scienceworld.js";
import { search } from "./search/search.js";
import { tasks } from "./tasks/tasks.js";
import { tau } from "./tau/tau.js";
import { textworld } from "./textworld/textworld.js";
import { toolbench } from "./toolbench/toolbench.js";
import { webshop } from "./webshop/webshop.js";

const kinds = new Map<string, EnvKind>();

/** Settings that every environment has (`open.ts`). */
const RESERVED = ["name", "limits"];

/** All known kinds of environments, sorted by name. */
export function envKinds(): readonly EnvKind[] {
  return [...kinds.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Whether a kind comes with this package, so that every thread knows it. */
export function isBuiltIn(name: string): boolean {
  return builtIn.has(name);
}

/**
 * The kind with this name; an unknown name is an `EnvError` with the nearest name and a list of
 * all.
 */
export function findEnvKind(name: string): EnvKind {
  const kind = kinds.get(name);
  if (kind !== undefined) return kind;
  const names = envKinds().map((known) => known.name);
  throw new EnvError(
    `There is no environment "${name}".${didYouMean(name, names)} Known: ${names.join(", ")}.`,
  );
}

/** Adds a kind of environment, so that commands and configurations can name it. */
export function registerEnv(kind: EnvKind): void {
  if (typeof kind?.name !== "string" || !/^[a-z][a-z0-9-]*$/.test(kind.name)) {
    throw new EnvError(
      `An environment's name consists of lowercase letters, digits and dashes, not "${kind?.name}".`,
    );
  }
  if (kind.options?._zod?.def?.type !== "object" || typeof kind.open !== "function") {
    throw new EnvError(
      `environment "${kind.name}": expected { name, summary, options, open(options) }, where options is a zod object; defineEnv checks the types`,
    );
  }
  const reserved = RESERVED.find((key) => key in kind.options.shape);
  if (reserved !== undefined) {
    throw new EnvError(
      `environment "${kind.name}": an option cannot be called ${reserved}; every environment has that one`,
    );
  }
  const known = kinds.get(kind.name);
  if (known !== undefined && known !== kind) {
    throw new EnvError(
      `There is an environment "${kind.name}" already (${known.summary}); choose another name.`,
    );
  }
  kinds.set(kind.name, kind);
}

registerEnv(household);
registerEnv(alfworld);
registerEnv(webshop);
registerEnv(textworld);
registerEnv(search);
registerEnv(scienceworld);
registerEnv(tasks);
registerEnv(desk);
registerEnv(mcp);
registerEnv(openenv);
registerEnv(agentgym);
registerEnv(tau);
registerEnv(toolbench);

const builtIn: ReadonlySet<string> = new Set(kinds.keys());
