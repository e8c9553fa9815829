/** The environment `mcp`: tasks from files, worked on with the tools of MCP servers. */

import { defineToolEnv } from "@pawl/core/envs/define-env.js";
import { EnvError, type EnvKind } from "@pawl/core/envs/env.js";
import { program } from "@pawl/core/trust/reach.js";
import { z } from "zod";
import { rewardNames, rewardOf } from "../tasks/rewards.js";
import { openToolTasks } from "../tool-tasks/tool-tasks.js";
import { connectServers } from "./mcp-host.js";
import { checkVariables } from "./placeholders.js";

const texts = z.record(z.string(), z.string());

const server = z
  .strictObject({
    command: z.string().optional(),
    args: z.array(z.string()).default([]),
    env: texts.default({}),
    cwd: z.string().optional(),
    url: z.string().optional(),
    headers: texts.default({}),
    prefix: z
      .string()
      .regex(/^[\w.-]{0,32}$/)
      .default(""),
    tools: z.array(z.string()).min(1).optional(),
  })
  .superRefine(({ command, url, headers, args, env, cwd }, context) => {
    const refuse = (message: string) => context.addIssue({ code: "custom", message });
    if ((command === undefined) === (url === undefined))
      refuse("expected a command to start, or the url of a server that runs");
    if (command === undefined && (args.length > 0 || Object.keys(env).length > 0 || cwd))
      refuse("args, env and cwd belong to a command; a server with a url has headers");
    if (url === undefined && Object.keys(headers).length > 0)
      refuse("headers belong to a url; a command has env");
    if (url !== undefined && !/^https?:\/\//.test(url))
      refuse(`url: expected http:// or https://, got ${url}`);
  });

const optionsNow = () =>
  z.strictObject({
    servers: program(z.record(z.string().regex(/^[\w-]+$/), server)).describe(
      "MCP servers by name: a command (args, env, cwd) or a url (headers); {env:NAME} is an environment variable",
    ),
    train: z
      .string()
      .describe("tasks to train on, a .jsonl file: a goal per line, and what the reward needs"),
    valid: z.string().optional().describe("tasks to evaluate on, in the same form"),
    reward: z
      .enum(["server", ...rewardNames()])
      .default("exact")
      .describe(
        "what earns 1: the task's answer (exact) or a match of its pattern; or the reward is the server's (plugins add others)",
      ),
    maxReward: z.number().gt(0).default(1).describe("the largest reward"),
    steps: z.int().min(1).default(20).describe("most calls of an episode"),
    instructions: z
      .string()
      .default("You solve tasks with tools, and then give the answer.")
      .describe("what the agent is told about its work"),
  });

type Options = ReturnType<typeof optionsNow>;

const kind = defineToolEnv({
  name: "mcp",
  privileged: true,
  summary: "your own tasks, worked on with the tools of MCP servers: fresh ones in each episode",
  options: optionsNow(),
  ready: ({ servers }) => checkVariables(servers),
  open: ({ servers, train, valid, reward, maxReward, steps, instructions }) => {
    if (Object.keys(servers).length === 0)
      throw new EnvError("environment mcp: servers: expected one server or more, got none");
    return openToolTasks({
      name: "mcp",
      splits: { train, ...(valid !== undefined && { valid }) },
      reward: reward === "server" ? "host" : rewardOf(reward),
      stepLimit: steps,
      maxReturn: maxReward,
      instructions,
      copies: false,
      open: (task, _, signal) => connectServers(servers, task, signal),
    });
  },
});

/** Tools of MCP servers. */
export const mcp: EnvKind<Options> = {
  ...kind,
  // Plugins add rewards after this file is loaded.
  get options() {
    return optionsNow();
  },
};
