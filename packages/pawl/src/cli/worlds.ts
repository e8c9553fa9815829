/** The worlds of this program: the one list of their names. A world is loaded when it is needed. */
import { registerEnvs } from "@pawl/core/envs/registry.js";

/** Where commands act that name no world. */
export const DEFAULT_WORLD = "household";

registerEnvs([
  {
    name: DEFAULT_WORLD,
    load: async () => (await import("@pawl/core/envs/household/household.js")).household,
  },
  {
    name: "alfworld",
    load: async () => (await import("@pawl/worlds/alfworld/alfworld.js")).alfworld,
  },
  { name: "webshop", load: async () => (await import("@pawl/worlds/webshop/webshop.js")).webshop },
  {
    name: "textworld",
    load: async () => (await import("@pawl/worlds/textworld/textworld.js")).textworld,
  },
  { name: "search", load: async () => (await import("@pawl/worlds/search/search.js")).search },
  {
    name: "scienceworld",
    load: async () => (await import("@pawl/worlds/scienceworld/scienceworld.js")).scienceworld,
  },
  { name: "tasks", load: async () => (await import("@pawl/agents/tasks/tasks.js")).tasks },
  { name: "desk", load: async () => (await import("@pawl/core/envs/desk/desk.js")).desk },
  { name: "mcp", load: async () => (await import("@pawl/agents/mcp/mcp.js")).mcp },
  { name: "openenv", load: async () => (await import("@pawl/agents/openenv/openenv.js")).openenv },
  {
    name: "agentgym",
    load: async () => (await import("@pawl/agents/agentgym/agentgym.js")).agentgym,
  },
  { name: "tau", load: async () => (await import("@pawl/worlds/tau/tau.js")).tau },
  {
    name: "toolbench",
    load: async () => (await import("@pawl/worlds/toolbench/toolbench.js")).toolbench,
  },
  {
    name: "terminal",
    load: async () => (await import("@pawl/worlds/terminal/terminal.js")).terminal,
  },
  {
    name: "simulator",
    load: async () => (await import("@pawl/worldmodel/simulator-kind.js")).simulator,
  },
]);
