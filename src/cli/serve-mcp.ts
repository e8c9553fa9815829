import { z } from "zod";
import { EnvError } from "../envs/env.js";
import { serveTools } from "../envs/mcp/tool-server.js";
import { openEnvironment } from "../envs/open.js";
import { defineCommand, exitCodes } from "./command.js";
import { envOptions } from "./env-options.js";

/** `pawl serve mcp`: one episode of a tool environment as an MCP server. */
export const serveMcp = defineCommand({
  name: "serve mcp",
  summary:
    "serve an episode of a tool environment to any MCP client, over standard input and output",
  details:
    "For an MCP client to start. The goal is in the server's instructions, each call of a tool is a step, and _meta of its\nresult has the reward. The episode lasts as long as the connection.",
  options: (peek) =>
    z.strictObject({
      env: envOptions(peek),
      task: z.string().optional().describe("task to serve, such as train/17 (default: the first)"),
      seed: z.int().min(0).default(0).describe("random seed of the episode"),
    }),
  examples: [
    ["pawl serve mcp --env desk --task train/0", "one case at the desk"],
    ["pawl serve mcp --plugin ./mine.ts --env mine", "a plugin's environment"],
  ],
  async run({ config, io, signal }) {
    const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
    const task =
      config.task === undefined
        ? environment.tasks(environment.splits[0]!)[0]!
        : environment.task(config.task);
    const env = environment.create();
    try {
      const observation = await env.reset(task, config.seed);
      if (env.tools === undefined)
        throw new EnvError(
          `${environment.name} has no tools: only environments whose actions are tool calls can be served`,
        );
      await serveTools({ env, observation, input: io.stdin, output: io.stdout, signal });
    } finally {
      if ("close" in env) await env.close();
      await environment.close?.();
    }
    return exitCodes.done;
  },
});
