/**
 * An episode of a tool environment as a set of tools for the AI SDK (`generateText({ tools })`,
 * `ToolLoopAgent`): plain objects, made without that package.
 */
import type { z } from "zod";
import { zodSchema } from "../text/json-schema.js";
import { callText } from "../text/tool.js";
import { type Env, EnvError, type RemoteEnv, type StepResult } from "./env.js";

/** A tool as the AI SDK takes it. */
interface SetTool {
  readonly description: string;
  readonly inputSchema: z.ZodType<Record<string, unknown>>;
  execute(input: Record<string, unknown>): Promise<string>;
}

/** An episode that is played by calling tools. */
export interface ToolSet {
  /** By name, for `tools`. */
  readonly tools: Record<string, SetTool>;
  /** What each call was worth, so far. */
  readonly steps: readonly StepResult[];
  /** Whether the episode is over, for `stopWhen`. */
  readonly done: boolean;
}

/** The tools of a world in which an episode has begun. */
export function toolSet(env: Env | RemoteEnv): ToolSet {
  if (env.tools === undefined)
    throw new EnvError("this environment has no tools: its actions are texts, not tool calls");
  const steps: StepResult[] = [];
  const isDone = (): boolean => steps.at(-1)?.done ?? false;
  const tools = env.tools().map(({ name, description, parameters }): [string, SetTool] => [
    name,
    {
      description,
      inputSchema: zodSchema(parameters) as SetTool["inputSchema"],
      async execute(input) {
        if (isDone()) return "The episode is over.";
        const result = await env.step(callText({ tool: name, arguments: input }));
        steps.push(result);
        return result.observation;
      },
    },
  ]);
  return {
    tools: Object.fromEntries(tools),
    steps,
    get done() {
      return isDone();
    },
  };
}
