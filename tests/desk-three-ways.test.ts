/** The desk as an environment, as an MCP server and as an AI SDK agent: one world, one reward. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { some } from "@pawl/core/dose-testing.js";
import type { Env, RemoteEnv, StepResult } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { toolSet } from "@pawl/core/envs/tool-env.js";
import { createRandom } from "@pawl/core/random.js";
import { callText, readCall, type ToolCall } from "@pawl/core/text/tool.js";
import { generateText } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { describe, expect, it } from "vitest";

const level = "medium";
const environment = openEnvironment({ name: "desk", level });

function start(id: string): Env {
  const env = environment.create() as Env;
  env.reset(environment.task(id));
  return env;
}

/** An episode in process: the expert's, or one with a random call before every second of its own. */
function inProcess(id: string, chance?: number): { actions: string[]; results: StepResult[] } {
  const env = start(id);
  const random = createRandom(chance ?? 0);
  const actions: string[] = [];
  const results: StepResult[] = [];
  while (results.at(-1)?.done !== true && actions.length < 20) {
    const strays = chance !== undefined && actions.length % 2 === 0;
    const stray = () =>
      random.int(3) === 0
        ? callText({ tool: "get_order", arguments: { order: 9 } })
        : random.pick(env.admissibleActions!());
    const action = strays ? stray() : environment.expert!(env);
    actions.push(action);
    results.push(env.step(action));
  }
  return { actions, results };
}

/** The same calls through an MCP server in a process of its own. */
async function overMcp(id: string, actions: readonly string[]): Promise<StepResult[]> {
  const train = join(mkdtempSync(join(tmpdir(), "pawl-desk-")), "tasks.jsonl");
  writeFileSync(train, `${JSON.stringify({ goal: "Work on the case.", case: id })}\n`);
  const command = resolve("dist/lib/main.js");
  const args = [command, "serve", "mcp", "--env", "desk", "--env.level", level, "--task", "{case}"];
  const remote = openEnvironment({
    name: "mcp",
    reward: "server",
    servers: { desk: { command: process.execPath, args } },
    train,
  });
  const env = remote.create() as RemoteEnv;
  try {
    const seen = await env.reset(remote.tasks("train")[0]!);
    expect(seen).toBe(`${start(id).goal}\n\nThe customer is waiting.`);
    const results: StepResult[] = [];
    for (const action of actions) results.push(await env.step(action));
    return results;
  } finally {
    await env.close();
  }
}

/** The same calls by a program of the AI SDK. */
async function bySdk(id: string, actions: readonly string[]): Promise<readonly StepResult[]> {
  const episode = toolSet(start(id));
  const calls = actions.map((action) => readCall(action) as ToolCall);
  const zero = { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 };
  let said = 0;
  await generateText({
    model: new MockLanguageModelV3({
      doGenerate: async () => {
        const { tool, arguments: input } = calls[said++]!;
        return {
          content: [
            {
              type: "tool-call",
              toolCallId: `c${said}`,
              toolName: tool,
              input: JSON.stringify(input),
            },
          ],
          finishReason: { unified: "tool-calls", raw: undefined },
          usage: { inputTokens: zero, outputTokens: { total: 0, text: 0, reasoning: 0 } },
          warnings: [],
        };
      },
    }),
    tools: episode.tools,
    prompt: "Work on the case.",
    stopWhen: () => episode.done || said === calls.length,
  });
  return episode.steps;
}

describe("the same actions at the desk", () => {
  const episodes = [
    ["the expert's", "train/1", undefined],
    ["the expert's", "test_unseen/4", undefined],
    ["with strays", "train/7", 5],
    ["with strays", "valid_seen/9", 6],
  ] as const;
  it.each(some(episodes, 2))(
    "give the same in process, over MCP and in the AI SDK: %s, %s",
    async (_, id, chance) => {
      const { actions, results } = inProcess(id, chance);
      expect(results.at(-1)!.done).toBe(true);
      if (chance === undefined) expect(results.at(-1)!.reward).toBe(1);
      expect(await overMcp(id, actions)).toEqual(results);
      const legal = actions.filter((action) => !action.includes('"order":9}'));
      const again = start(id);
      expect(await bySdk(id, legal)).toEqual(legal.map((action) => again.step(action)));
    },
  );
});
