/** An environment whose episodes are an agent's own. There is no world to step in: its program plays. */
import type { Environment, Task } from "../envs/env.js";
import type { Agent, AgentTask } from "./agent.js";

/** An environment whose episodes are an agent's own. */
export interface AgentEnvironment extends Environment {
  readonly agent: Agent;
  /** The agent's own task. */
  given(task: Task): AgentTask;
}

/** Whether episodes of this environment are played by an agent's program. */
export function isAgentEnvironment(environment: Environment): environment is AgentEnvironment {
  return "agent" in environment;
}
