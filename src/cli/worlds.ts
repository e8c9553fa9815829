/** The worlds of this program: the one list of their names. A world is loaded when it is needed. */
import { registerEnvs } from "../envs/registry.js";

/** Where commands act that name no world. */
export const DEFAULT_WORLD = "household";

registerEnvs([
  {
    name: DEFAULT_WORLD,
    load: async () => (await import("../envs/household/household.js")).household,
  },
  { name: "alfworld", load: async () => (await import("../envs/alfworld/alfworld.js")).alfworld },
  { name: "webshop", load: async () => (await import("../envs/webshop/webshop.js")).webshop },
  {
    name: "textworld",
    load: async () => (await import("../envs/textworld/textworld.js")).textworld,
  },
  { name: "search", load: async () => (await import("../envs/search/search.js")).search },
  {
    name: "scienceworld",
    load: async () => (await import("../envs/scienceworld/scienceworld.js")).scienceworld,
  },
  { name: "tasks", load: async () => (await import("../envs/tasks/tasks.js")).tasks },
  { name: "desk", load: async () => (await import("../envs/desk/desk.js")).desk },
  { name: "mcp", load: async () => (await import("../envs/mcp/mcp.js")).mcp },
  { name: "openenv", load: async () => (await import("../envs/openenv/openenv.js")).openenv },
  { name: "agentgym", load: async () => (await import("../envs/agentgym/agentgym.js")).agentgym },
  { name: "tau", load: async () => (await import("../envs/tau/tau.js")).tau },
  {
    name: "toolbench",
    load: async () => (await import("../envs/toolbench/toolbench.js")).toolbench,
  },
  {
    name: "simulator",
    load: async () => (await import("../worldmodel/simulator-kind.js")).simulator,
  },
]);
