/** What `/schema` and `/metadata` say about an environment. */

import { type Environment, isRemote } from "@pawl/core/envs/env.js";
import { packageVersion } from "@pawl/core/version.js";
import { FACTS_KEY, OBSERVATION_TITLE, type ServedFacts } from "./protocol.js";

/** The schemas of a served environment, and what its sessions can do. */
export interface ServedSchema {
  readonly hasTools: boolean;
  readonly schema: object;
  readonly metadata: object;
}

const text = (description: string) => ({ type: "string", description });
const flag = (description: string) => ({ type: "boolean", description });
const free = { type: "object", additionalProperties: true, default: {} };

/** Looks at a world of the environment once. */
export async function describeServed(
  environment: Environment,
  summary: string,
  sessions: number,
): Promise<ServedSchema> {
  const env = environment.create();
  const hasTools = env.tools !== undefined;
  const admissible = env.admissibleActions !== undefined;
  const context = env.initialContext !== undefined;
  const maxReturns = env.maxReturn !== undefined;
  if (isRemote(env)) await env.close();
  const { name, stepLimit, maxReturn, whiteSpace, freeText, prompt } = environment;
  // Words with code of their own cannot travel.
  const plain = prompt !== undefined && !Object.values(prompt).some(isFunction);
  const facts: ServedFacts = {
    ...{ env: name, stepLimit, maxReturn, sessions, admissible, context },
    ...(maxReturns && { maxReturns }),
    ...(whiteSpace && { whiteSpace }),
    ...(freeText && { freeText }),
    ...(plain && { prompt }),
  };
  return {
    hasTools,
    schema: {
      action: hasTools ? toolAction : textAction,
      observation: { ...observation(hasTools, admissible), [FACTS_KEY]: facts },
      state,
    },
    metadata: {
      name,
      description: summary,
      readme_content: null,
      version: packageVersion(),
      author: null,
      documentation_url: null,
    },
  };
}

const isFunction = (value: unknown): boolean => typeof value === "function";

const textAction = {
  title: "TextAction",
  type: "object",
  properties: { action: text("what to do, in words"), metadata: free },
  required: ["action"],
  additionalProperties: false,
};

/** The name by which clients know that the environment is a set of tools. */
const toolAction = {
  title: "CallToolAction",
  type: "object",
  properties: {
    type: { type: "string", enum: ["call_tool", "list_tools"], default: "call_tool" },
    tool_name: text("name of the tool to call"),
    arguments: { ...free, description: "its arguments" },
    metadata: free,
  },
  required: ["tool_name"],
  additionalProperties: false,
};

const observation = (hasTools: boolean, admissible: boolean): object => ({
  title: OBSERVATION_TITLE,
  type: "object",
  properties: {
    done: flag("whether the episode is over"),
    reward: { anyOf: [{ type: "number" }, { type: "null" }], default: null },
    text: text("what is seen"),
    goal: text("what is to be done"),
    task: text("the task's id"),
    task_type: text("the task's family"),
    ...(admissible && {
      admissible_actions: {
        ...{ type: "array", items: { type: "string" } },
        description: "what can be done now, sorted",
      },
    }),
    valid: flag("whether the last action was carried out"),
    success: flag("whether the goal is reached"),
    score: {
      anyOf: [{ type: "number" }, { type: "null" }],
      description: "a graded result from 0 to 1",
    },
    ...(hasTools && {
      tool_name: text("the tool that was called"),
      result: text("its result, as in text"),
      error: { type: "null" },
    }),
    metadata: free,
  },
});

const state = {
  title: "PawlState",
  type: "object",
  properties: {
    episode_id: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
    step_count: { type: "integer", minimum: 0, default: 0 },
    step_limit: { type: "integer", minimum: 1, description: "most steps in a rollout of Pawl's" },
    task: text("the task's id"),
    split: text("its split"),
    index: { type: "integer", minimum: 0, description: "its place in the split" },
    seed: { type: "integer", minimum: 0 },
    return: { type: "number", description: "sum of the rewards" },
    done: { type: "boolean" },
    initial_context: {
      anyOf: [{ type: "string" }, { type: "null" }],
      description: "facts that a world model may know and a policy may not",
    },
    max_return: {
      anyOf: [{ type: "number" }, { type: "null" }],
      description: "the largest return of this task, if it has one of its own",
    },
  },
  additionalProperties: true,
};
