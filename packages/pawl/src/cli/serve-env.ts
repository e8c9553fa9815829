import { serveTools } from "@pawl/agents/mcp/tool-server.js";
import { createEnvServer } from "@pawl/agents/openenv/env-server.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { EnvError } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { envOptions } from "./env-options.js";
import { print, warn } from "./io.js";
import { aborted, close, listen } from "./listen.js";
import { host, KEY_VARIABLE, keyFile, port, serveKey } from "./serve-key.js";

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
          `${environment.name} has no tools: only environments whose actions are tool calls can be served${"actions" in config.env ? ", as they are with --env.actions tool" : ""}`,
        );
      await serveTools({ env, observation, input: io.stdin, output: io.stdout, signal });
    } finally {
      if ("close" in env) await env.close();
      await environment.close?.();
    }
    return exitCodes.done;
  },
});

/** `pawl serve env`: an environment behind OpenEnv's protocol. */
export const serveEnv = defineCommand({
  name: "serve env",
  summary: "serve an environment to other trainers, over OpenEnv's protocol",
  positionals: "[NAME|FILE]",
  details:
    "Clients of OpenEnv play episodes at http://HOST:PORT: reset(split=…, index=…, seed=…) chooses the task. Beyond\nloopback, clients must send a key (docs/serve-env.md).",
  takesPlugin: true,
  takesEnv: true,
  options: (peek) =>
    z.strictObject({
      env: envOptions(peek),
      host,
      port,
      keyFile,
      maxSessions: z
        .int()
        .min(1)
        .default(1024)
        .describe("maximum number of episodes at once (fewer if the environment allows fewer)"),
      maxMessageKib: z
        .int()
        .min(1)
        .max(65_536)
        .default(1024)
        .describe("largest message from a client, in KiB"),
      idleMinutes: z
        .number()
        .positive()
        .max(10_000)
        .default(30)
        .describe("minutes after which an unused session ends"),
    }),
  examples: [
    ["pawl serve env alfworld", "ALFWorld at http://127.0.0.1:8000"],
    ["pawl serve env webshop --env.data … --port 9000", "with the environment's own settings"],
    ["pawl serve env ./guess.ts", "the environment of a plugin"],
    ["pawl serve env simulator --env.model runs/…", "a world model in place of its world"],
    [
      `${KEY_VARIABLE}=… pawl serve env household --host 0.0.0.0`,
      "reachable from other machines, with a key",
    ],
  ],
  async run({ config, io, signal }) {
    const key = serveKey(config, io);
    const name = String(config.env.name);
    const environment = openEnvironment({ ...config.env, name });
    if ("agent" in environment)
      throw new ConfigError(`${name} is an agent's program: there is no world to serve`);
    // Missing data is reported here, and not to the first client.
    environment.tasks(environment.splits[0]!);
    const { server, maxSessions, stop } = await createEnvServer({
      environment,
      summary: findEnvKind(name).summary,
      key,
      limits: {
        maxSessions: config.maxSessions,
        maxMessageBytes: 1024 * config.maxMessageKib,
        idleMs: 60_000 * config.idleMinutes,
      },
      onFault: (error) => warn(io, `an episode failed: ${(error as Error).message}`),
    });
    const { host: at } = await listen(server, config.port, config.host);
    print(io, `${name} at http://${at}, up to ${maxSessions} sessions; Ctrl-C stops it`);
    await aborted(signal);
    await stop();
    await close(server);
    await environment.close?.();
    return exitCodes.done;
  },
});
