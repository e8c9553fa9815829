/** Training an agent's own program, as a library and as the default of the command line. */
import type { Agent } from "../agents/agent.js";
import { registerAgent } from "../agents/agent-kind.js";
import { givenIn, resolveConfig } from "../config/resolve.js";
import type { SettingsTree } from "../config/settings-tree.js";
import type { Environment } from "../envs/env.js";
import { endedByEscaped } from "../escaped-errors.js";
import { defaultRunFolder } from "../runs/run-folder.js";
import { trainConfig } from "./config.js";
import { type TrainOptions, trainRun } from "./run.js";

/** What an agent's runs are set to where nothing else is said. */
export function agentSettings({ name, splits }: Pick<Environment, "name" | "splits">) {
  const [first, ...others] = splits;
  const split = splits.includes("train") ? "train" : first;
  const tested = splits.filter((one) => one !== split);
  return {
    env: { name },
    prompt: { style: "chat" },
    model: { maxContext: 1024 },
    groups: 8,
    maxTokens: 256,
    ...(split !== undefined && { split }),
    evaluation: { splits: others.length > 0 ? tested : splits },
  };
}

/** An agent, the settings of its training that differ from the defaults, and where to record. */
export interface TrainAgentOptions<T extends object>
  extends Agent<T>,
    Omit<TrainOptions, "folder"> {
  readonly name: string;
  /** As in a configuration of `pawl train`, such as `{ model: { start: "FILE.gguf" } }`. */
  readonly settings?: SettingsTree;
  /** The run folder (default: a new one in runs/). */
  readonly folder?: string;
}

/** Trains the model that an agent asks, and records everything to the run folder it returns. */
export async function trainAgent<T extends object>(options: TrainAgentOptions<T>): Promise<string> {
  const { name, tasks, run, reward, filter, maxReturn, callLimit, texts, ...rest } = options;
  const { settings = {}, folder = defaultRunFolder("train", name), ...how } = rest;
  const agent = { name, tasks, run, reward, filter, maxReturn, callLimit, texts };
  const kind = registerAgent(agent as unknown as Agent, name);
  const base = agentSettings({ name, splits: Object.keys(tasks) });
  const layers = [
    { path: "the defaults of an agent", content: base },
    { path: "settings", content: settings },
  ];
  const schema = trainConfig(kind);
  const given = givenIn(schema, [], layers[1]);
  const config = resolveConfig(schema, { layers, flags: [] });
  await endedByEscaped(how.signal, (signal) => trainRun(config, { given, ...how, folder, signal }));
  return folder;
}
