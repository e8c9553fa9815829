import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { openEnvironment } from "../envs/open.js";
import { createEnvServer } from "../envs/openenv/env-server.js";
import { findEnvKind } from "../envs/registry.js";
import { defineCommand, exitCodes } from "./command.js";
import { envOptions } from "./env-options.js";
import { print, warn } from "./io.js";
import { aborted, close, listen } from "./listen.js";
import { host, KEY_VARIABLE, keyFile, port, serveKey } from "./serve-key.js";

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
