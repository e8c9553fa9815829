import { envChecks } from "@pawl/core/envs/conformance.js";
import type { Env, Environment, RemoteEnv } from "@pawl/core/envs/env.js";
import { callText } from "@pawl/core/text/tool.js";
import { jsonSchema, tool } from "ai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { AiTools } from "./ai-tools.js";
import { defineTools, type ToolsWorld } from "./define-tools.js";

interface Pot {
  coins: number;
}

const task = { goal: "Save 3 coins.", solution: [{ tool: "save", arguments: { coins: 3 } }] };

const pot: ToolsWorld<Pot> = {
  name: "pot",
  summary: "save coins",
  splits: { train: () => [task], valid: () => [{ ...task, type: "other" }] },
  start: () => ({ coins: 0 }),
  tools: (state) => ({
    save: tool({
      description: "Save coins.",
      inputSchema: z.object({ coins: z.int().min(1).default(1) }),
      execute: ({ coins }) => {
        state.coins += coins;
        return { coins: state.coins };
      },
    }),
  }),
  reward: ({ state }) => (state.coins === 3 ? 1 : 0),
  clone: (state) => ({ ...state }),
};

const open = (world: ToolsWorld<Pot>): Environment => {
  const kind = defineTools(world);
  return kind.open(kind.options.parse({}));
};
const call = (name: string, given: Record<string, unknown> = {}): string =>
  callText({ tool: name, arguments: given });
const save = call("save", { coins: 1 });
const answer = call("answer", { answer: "done" });

describe("tools in TypeScript as an environment", () => {
  describe("with a state that can be copied", () => {
    for (const check of envChecks(open(pot), { actions: [save, answer] }))
      it(check.name, check.run);
  });

  const { clone: _, ...remote } = pot;
  describe("with one that cannot", () => {
    for (const check of envChecks(open(remote), { actions: [save, answer] }))
      it(check.name, check.run);
  });

  it("clones independently, and judges the state at the answer", () => {
    const environment = open(pot);
    const env = environment.create() as Env;
    env.reset(environment.task("train/0"));
    env.step(save);
    const copy = env.clone();
    expect(copy.step(call("save", { coins: 2 })).observation).toBe('{"coins":3}');
    expect(copy.step(answer)).toMatchObject({ reward: 1, done: true, info: { success: true } });
    expect(env.step(answer)).toMatchObject({ reward: 0, done: true, info: { success: false } });
  });

  it("applies the schema's defaults, and shows errors to the agent", async () => {
    const environment = open(remote);
    const env = environment.create() as RemoteEnv;
    await env.reset(environment.task("train/0"));
    expect((await env.step(call("save"))).observation).toBe('{"coins":1}');
    expect(await env.step(call("save", { coins: 0 }))).toMatchObject({ info: { valid: false } });
    await env.close();
  });

  const played = async (tools: AiTools, name: string, given = {}) => {
    const environment = open({ ...remote, tools: () => tools });
    const env = environment.create() as RemoteEnv;
    await env.reset(environment.task("train/0"));
    const { observation, info } = await env.step(call(name, given));
    await env.close();
    return [observation, info.valid];
  };
  const nothing = z.object({});

  it.each<[string, AiTools[string], unknown]>([
    ["a promise", { inputSchema: nothing, execute: async () => "later" }, ["later", true]],
    [
      "parts, of which the last counts",
      {
        inputSchema: nothing,
        async *execute() {
          yield "one";
          yield "two";
        },
      },
      ["two", true],
    ],
    [
      "an error",
      {
        inputSchema: nothing,
        execute: () => {
          throw new Error("no coins");
        },
      },
      ["Error: no coins", false],
    ],
    [
      "what toModelOutput makes of it",
      {
        inputSchema: nothing,
        execute: () => 7,
        toModelOutput: ({ output }: { output: number }) => ({ type: "text", value: `n${output}` }),
      },
      ["n7", true],
    ],
    [
      "a result for a plain JSON Schema",
      tool({
        inputSchema: jsonSchema<object>({ type: "object", properties: {} }),
        execute: () => "plain",
      }),
      ["plain", true],
    ],
  ])("a tool may give %s", async (_name, one, expected) => {
    expect(await played({ one }, "one")).toEqual(expected);
  });

  it.each<[AiTools, RegExp]>([
    [{ a: { inputSchema: nothing } }, /tool a: it has no execute/],
    [{ a: { inputSchema: nothing, execute: () => "", needsApproval: true } }, /needsApproval/],
    [{ a: { type: "provider", inputSchema: nothing, execute: () => "" } }, /runs elsewhere/],
    [{ a: { inputSchema: "text", execute: () => "" } }, /inputSchema: expected a zod 4 schema/],
    [{ answer: { inputSchema: nothing, execute: () => "" } }, /a tool named answer already/],
  ])("refuses tools that cannot be called: %#", async (tools, message) => {
    await expect(played(tools, "a")).rejects.toThrow(message);
  });

  it("refuses promises where the world has clone", () => {
    const environment = open({
      ...pot,
      tools: () => ({ one: { inputSchema: nothing, execute: async () => "late" } }),
    });
    const env = environment.create() as Env;
    env.reset(environment.task("train/0"));
    expect(() => env.step(call("one"))).toThrow(
      /pot: the tool one answered with a promise, but the world has clone/,
    );
  });

  it("names a solution that is none", () => {
    const environment = open({ ...pot, splits: { train: () => [{ ...task, solution: [3] }] } });
    const env = environment.create() as Env;
    env.reset(environment.task("train/0"));
    expect(() => environment.expert!(env)).toThrow(/task train\/0: "solution", call 1: expected/);
  });
});
