// biome-ignore-all assist/source/organizeImports: in the order in which they are met.
/**
 * The library: what examples/loop.ts, the other examples, the tutorials and the documents use. Everything else is
 * reached by commands.
 */

import "@pawl/models/no-telemetry.js";
import "./cli/all-worlds.js";

/** Worlds, text, rollouts, and all of learning but the engines. */
export * from "@pawl/core/index.js";

// ── Worlds

/** Makes tool definitions of the AI SDK, or of its shape, into an environment. */
export { defineTools } from "@pawl/agents/tool-tasks/define-tools.js";
/** Makes a world of tasks with a reward at their end into an environment. */
export { defineTaskEnv } from "@pawl/agents/tasks/task-env.js";
/** Serves an environment by OpenEnv's protocol. */
export { createEnvServer } from "@pawl/agents/openenv/env-server.js";
/** The reward of a finished episode. */
export type { RewardFunction } from "@pawl/agents/tasks/rewards.js";

// ── Text

/** The words that worlds use, to build a tokenizer from. */
export { worldTexts } from "@pawl/training/world-text.js";

// ── Learning

/** Starts a small model in this process. */
export { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
/** Connects to a model on an engine server: the same engine, on a GPU. */
export { connectRemoteEngine } from "@pawl/engine-remote/remote/remote-engine.js";
/** Trains as `pawl train` does, into a run folder. */
export { trainRun } from "@pawl/training/run.js";
/** The settings of `trainRun` in an environment, as a schema. */
export { trainConfig } from "@pawl/training/config.js";

// ── Agents of your own

/** Describes an agent: its tasks, how it runs, and its reward. */
export { defineAgent } from "@pawl/agents/agent.js";
/** Trains an agent. */
export { trainAgent } from "@pawl/training/train-agent.js";
/** An address that speaks OpenAI's API, for one session of an agent. */
export { sessionEndpoint } from "@pawl/agents/endpoint/session-endpoint.js";
/** A trained model as a model of the AI SDK. */
export { pawlModel } from "@pawl/agents/ai-sdk-model.js";
/** What `defineAgent` takes. */
export type { Agent } from "@pawl/agents/agent.js";
/** What an agent's run left, for its reward. */
export type { AgentRun } from "@pawl/agents/agent.js";

// ── World models

/** Opens a trained world model. */
export { loadWorldModel } from "@pawl/worldmodel/saved.js";
/** A world model as an environment. */
export { createSimulator } from "@pawl/worldmodel/simulator.js";
/** A trained agent, or a policy by name, as a player. */
export { openPlayer } from "@pawl/worldmodel/players.js";
/** How well success inside a world model carries over. */
export { measureConsistency } from "@pawl/worldmodel/consistency.js";
/** What says what a world would answer. */
export type { WorldModel } from "@pawl/worldmodel/model.js";

// ── Plugins

/** Describes a plugin: environments, rewards, estimators, losses, policies, prompt styles. */
export { definePlugin } from "./plugins/plugin.js";
/** Loads a plugin from its file. */
export { loadPlugin } from "./plugins/load.js";
/** What `definePlugin` takes. */
export type { Plugin } from "./plugins/plugin.js";
