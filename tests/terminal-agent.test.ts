/** An agent with a client of its own in the terminal: a model that says what it should is worth 1. */
import { hermes, scriptedSession } from "@pawl/agents/testing.js";
import type { Env } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { expect, it } from "vitest";
import agent from "../examples/terminal-agent.js";

const call = (tool: string, given: unknown): string =>
  `<tool_call>${JSON.stringify({ name: tool, arguments: given })}</tool_call>`;
const bash = (command: string): string => call("bash", { command });

/** What a run of the agent is worth, and what the model had read at its last call. */
async function run(id: string, says: readonly string[]) {
  const options = { maxContext: 30_000, sampling: { maxTokens: 4000 } };
  const { session, asked } = scriptedSession(says, options);
  const stop = new AbortController();
  const task = { id, type: "" };
  const worth = await agent.run(task, { session } as never, stop.signal);
  stop.abort();
  return { worth, read: hermes.decode(Array.from(asked.at(-1)!.prompt)) };
}

function solution(id: string): string[] {
  const environment = openEnvironment({ name: "terminal" });
  const env = environment.create() as Env;
  env.reset(environment.task(id));
  const commands: string[] = [];
  while (commands.at(-1) !== "exit") {
    commands.push(environment.expert!(env));
    env.step(commands.at(-1)!);
  }
  return commands;
}

it("passes the hidden test by calls of bash, and by stopping when all is done", async () => {
  for (const id of ["train/4", "test/9"]) {
    const commands = solution(id);
    expect((await run(id, commands.map(bash))).worth).toBe(1);
    expect((await run(id, [...commands.slice(0, -1).map(bash), "Done."])).worth).toBe(1);
  }
  expect((await run("train/4", ["Done."])).worth).toBe(0);
});

it("is told of what is no call of bash, and sees both ends of long output", async () => {
  const says = [
    call("look", { place: "shelf" }),
    call("bash", { line: 1 }),
    bash("seq 5000"),
    "ok",
  ];
  const { read, worth } = await run("train/4", says);
  expect(worth).toBe(0);
  expect(read).toContain("There is one tool: bash.");
  expect(read).toContain("command");
  expect(read).toMatch(/1\n2\n3\n.*characters left out …\].*4999\n5000/s);
});
