import { isAllowed, jsonTokenizer } from "@pawl/core/constraint/constraint-testing.js";
import { vocabularyOf } from "@pawl/core/constraint/vocabulary.js";
import type { Engine } from "@pawl/core/engine/engine.js";
import type { Group } from "@pawl/core/rollout/episode.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { createScheduler } from "@pawl/core/rollout/scheduler.js";
import { packEpisode, unpackEpisode } from "@pawl/core/runs/episode-record.js";
import type { Constraint } from "@pawl/core/text/constraint.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { actionSequences, transitionsOf } from "@pawl/core/update/transitions.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { generateText, Output, stepCountIs, tool } from "ai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineAgent } from "./agent.js";
import type { AgentEnvironment } from "./agent-environment.js";
import { agentKind } from "./agent-kind.js";
import { agentPolicy } from "./agent-policy.js";
import { pawlModel } from "./ai-sdk-model.js";
import { startEndpoint } from "./endpoint/testing.js";
import { createSession } from "./session.js";

const tokenizer = jsonTokenizer;
let engine: Engine;

beforeAll(async () => {
  const model = {
    preset: "tiny",
    vocabularySize: tokenizer.vocabularySize,
    maxContext: 512,
  } as const;
  engine = await createEmbeddedEngine({ model, seed: 3, threads: 1 });
});
afterAll(() => engine.dispose());

const mood = z.object({ mood: z.enum(["glad", "sad"]), degree: z.int().min(0).max(10) });
const look = tool({
  description: "Looks.",
  inputSchema: z.object({ direction: z.enum(["north", "south"]) }),
  execute: async ({ direction }) => `nothing in the ${direction}`,
});

describe("an ordinary program with the AI SDK", () => {
  test("gets the object it asks for", async () => {
    for (let seed = 0; seed < 4; seed++) {
      const model = pawlModel({ engine, tokenizer, seed });
      const { output, warnings } = await generateText({
        ...{ model, prompt: "How are you?" },
        output: Output.object({ schema: mood }),
      });
      expect(mood.parse(output)).toEqual(output);
      expect(warnings).toEqual([]);
    }
  });

  test("gets calls of its tools where it requires them", async () => {
    for (const toolChoice of ["required", { type: "tool", toolName: "look" }] as const) {
      const model = pawlModel({ engine, tokenizer, seed: 1 });
      const { toolCalls } = await generateText({
        ...{ model, prompt: "Look.", tools: { look }, toolChoice },
        stopWhen: stepCountIs(1),
      });
      expect(toolCalls).toHaveLength(1);
      expect(toolCalls[0]).toMatchObject({ toolName: "look" });
      expect(["north", "south"]).toContain(
        (toolCalls[0]!.input as { direction: string }).direction,
      );
    }
  });

  test("may call a tool or answer, where both are offered", async () => {
    const model = pawlModel({ engine, tokenizer, seed: 5 });
    const { steps } = await generateText({
      ...{ model, prompt: "Look, then say.", tools: { look } },
      output: Output.object({ schema: mood }),
      stopWhen: stepCountIs(3),
    }).catch((error) => ({ steps: error.steps ?? [] }));
    for (const step of steps)
      if (step.toolCalls.length === 0)
        expect(mood.safeParse(JSON.parse(step.text)).success).toBe(true);
  });

  test("is told of a schema that cannot be kept to", async () => {
    const model = pawlModel({ engine, tokenizer });
    const schema = z.object({ tags: z.array(z.string()).meta({ uniqueItems: true }) });
    await expect(
      generateText({ model, prompt: "?", output: Output.object({ schema }) }),
    ).rejects.toThrow(/format: tags: "uniqueItems" cannot be kept to/);
  });
});

const agent = defineAgent({
  tasks: { train: [{ id: "a", ask: "How are you?" }] },
  async run({ ask }: { id: string; ask: string }, model) {
    const { output } = await generateText({
      ...{ model, prompt: ask, tools: { look }, stopWhen: stepCountIs(3) },
      output: Output.object({ schema: mood }),
    });
    return output;
  },
  reward: ({ result }) => ((result as z.infer<typeof mood>).mood === "glad" ? 1 : 0),
});

/** Episodes of the agent, as they are recorded and read again. */
async function episodes(maxTokens: number, temperature = 1): Promise<readonly Group[]> {
  const environment = agentKind(agent, "moods").open({}) as AgentEnvironment;
  const sampling = { maxTokens, temperature };
  const groups = await rollout({
    environment,
    policy: agentPolicy({ environment, engine, tokenizer, sampling }),
    style: promptStyle({}, { style: "chat" }),
    tasks: environment.tasks("train"),
    groupSize: 4,
    seed: 2,
    stepLimit: 4,
  });
  return groups.map((group) => ({
    ...group,
    episodes: group.episodes.map((one) =>
      unpackEpisode(JSON.parse(JSON.stringify(packEpisode(one)))),
    ),
  }));
}

describe("episodes of such a program", () => {
  test("are scored under the masks they were sampled with, at any temperature", async () => {
    for (const temperature of [1, 0.7]) {
      const transitions = transitionsOf(await episodes(64, temperature));
      const scored = await engine.forward(actionSequences(transitions));
      expect(transitions.length).toBeGreaterThan(3);
      transitions.forEach(({ sequence, actionStart, actionEnd, logprobs }, i) => {
        expect(sequence.constraint).toMatchObject({ json: { type: "object" } });
        const own = Array.from(scored[i]!.logprobs.subarray(actionStart, actionEnd));
        own.forEach((logprob, at) => {
          expect(logprob).toBeCloseTo(logprobs![at]!, 3);
        });
      });
    }
  });

  test("fail, and are not broken, where the answer is cut off", async () => {
    const [group] = await episodes(5);
    for (const { stop, return: worth, error, steps } of group!.episodes) {
      expect(stop).not.toBe("broken");
      expect(worth).toBe(0);
      expect(steps.at(-1)!.cut).toBe(true);
      expect(error).toMatch(/No object generated|No output generated/);
    }
  });
});

describe("over HTTP", () => {
  const scheduler = () => createScheduler(engine, { pace: "served", sliceTokens: 4 });
  const ask = async (more: object) => {
    const sampler = scheduler();
    const { post } = await startEndpoint(sampler, {
      tokenizer,
      createSession: () =>
        createSession({
          ...{ sampler, tokenizer, maxContext: 512, seed: 4, constraints: true },
          sampling: { maxTokens: 128 },
        }),
    });
    const messages = [{ role: "user", content: "How are you?" }];
    return post("/v1/chat/completions", { model: "policy", messages, ...more });
  };
  const schema = z.toJSONSchema(mood, { target: "draft-7" });

  test("answers fit their response_format, in slices too", async () => {
    const response_format = { type: "json_schema", json_schema: { name: "mood", schema } };
    const [status, { choices }] = await ask({ response_format });
    expect(status).toBe(200);
    expect(mood.safeParse(JSON.parse(choices[0].message.content)).success).toBe(true);
  });

  test("any object is one, as far as it goes", async () => {
    const [status, { choices }] = await ask({ response_format: { type: "json_object" } });
    expect(status).toBe(200);
    expect(choices[0].message.content).toMatch(/^\{/);
  });

  test("a schema that cannot be kept to is refused by its name", async () => {
    const bad = { type: "json_schema", json_schema: { name: "x", schema: { not: {} } } };
    const [status, { error }] = await ask({ response_format: bad });
    expect([status, error.param]).toEqual([400, "response_format"]);
    expect(error.message).toContain('"not" cannot be kept to');
  });

  test("strict tools are called rightly, or not at all", async () => {
    const tools = [
      { type: "function", function: { name: "feel", strict: true, parameters: schema } },
    ];
    for (const tool_choice of ["auto", "required"]) {
      const [status, { choices }] = await ask({ tools, tool_choice });
      expect(status).toBe(200);
      const { tool_calls: calls = [] } = choices[0].message;
      if (tool_choice === "required") expect(calls).toHaveLength(1);
      for (const call of calls)
        expect(mood.safeParse(JSON.parse(call.function.arguments)).success).toBe(true);
    }
  });
});

test("what is sampled without masks is what it was before the first of them", async () => {
  const prompt = tokenizer.encode("How are you?");
  const request = { prompt, maxTokens: 20, seed: 1, count: 3 };
  const model = { preset: "tiny", vocabularySize: tokenizer.vocabularySize } as const;
  const other = await createEmbeddedEngine({ model, seed: 5, threads: 1 });
  other.useVocabulary?.(() => vocabularyOf(tokenizer));
  const before = await other.sample([request]);
  const constraint: Constraint = { json: { enum: [1, 2] } };
  const [held] = await other.sample([{ ...request, count: 1, constraint }]);
  expect(isAllowed(constraint, tokenizer.decode(held![0]!.tokens.slice(0, 1)))).toBe(true);
  expect(await other.sample([request])).toEqual(before);
  await other.dispose();
});
