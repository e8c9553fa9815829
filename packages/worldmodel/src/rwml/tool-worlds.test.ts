import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { hermes, plain } from "@pawl/agents/testing.js";
import type { ActingEngine } from "@pawl/core/engine/engine.js";
import type { Environment } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { guessKind } from "@pawl/core/envs/tool-env-testing.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { enginePolicy } from "@pawl/core/rollout/policies/engine.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { type PromptOptions, type PromptStyle, promptStyle } from "@pawl/core/text/prompt.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { makeData } from "@pawl/worlds/tau/testing.js";
import { afterAll, describe, expect, it } from "vitest";
import { heldOutSequences } from "./filter.js";
import { worldQuestion } from "./question.js";
import {
  asksOtherwise,
  checkTools,
  historyOf,
  loadTriplets,
  nextStateOf,
  saveTriplets,
  toolsOf,
  tripletsOf,
} from "./triplet.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-tool-worlds-"));
const data = makeData();
afterAll(() => {
  for (const made of [folder, data]) rmSync(made, { recursive: true });
});

function mcp(): Environment {
  const train = join(folder, "sums.jsonl");
  writeFileSync(train, JSON.stringify({ goal: "2 + 3?", answer: 5 }));
  const script = resolve("packages/agents/src/mcp/fixtures/server.mjs");
  const servers = { one: { command: process.execPath, args: [script] } };
  return openEnvironment({ name: "mcp", servers, train });
}

const hermesCall = (name: string, given: object) =>
  `<tool_call>\n${JSON.stringify({ name, arguments: given }, undefined, 1)}\n</tool_call>`;

/** Worlds with what a model says in them: calls, one with other spacing, and text that is no call. */
const worlds: readonly (readonly [string, () => Environment, readonly string[]])[] = [
  [
    "desk",
    () => openEnvironment({ name: "desk" }),
    [hermesCall("find_customer", { name: "Ada" }), "Let me think.", hermesCall("list_orders", {})],
  ],
  [
    "tau",
    () => openEnvironment({ name: "tau", domain: "tau2-mock", data }),
    [
      hermesCall("get_users", {}),
      `<think>It is pending.</think>${hermesCall("update_task_status", { task_id: "task_1", status: "completed" })}`,
      hermesCall("respond", { content: "Anything else?" }),
    ],
  ],
  ["mcp", mcp, [hermesCall("add", { a: 2, b: 3 }), "5?", hermesCall("answer", { answer: "5" })]],
  [
    "terminal",
    () => openEnvironment({ name: "terminal", actions: "tool", noise: "status" }),
    [
      hermesCall("bash", { command: "ls -l | head -n 3" }),
      "Let me think.",
      hermesCall("bash", { command: "cat none" }),
    ],
  ],
  [
    "own tools",
    () => guessKind().open({}),
    [hermesCall("guess", { number: 5 }), hermesCall("guess", { number: 3 }), "I do not know."],
  ],
];

/** Says these texts, one at each step. */
function saying(tokenizer: Tokenizer, texts: readonly string[]): ActingEngine {
  let at = 0;
  const { vocabularySize } = tokenizer;
  return {
    capabilities: { maxContext: 100_000, vocabularySize } as ActingEngine["capabilities"],
    async sample(requests) {
      const said = tokenizer.encode(texts[at++ % texts.length]!, { plain: true });
      const tokens = [...said, tokenizer.endId!];
      const logprobs = tokens.map(() => -1);
      return requests.map(() => [{ tokens, logprobs, stopReason: "stop" }]);
    },
  };
}

/** An episode as a model plays it, with the tokens that it read and wrote. */
async function played(
  environment: Environment,
  texts: readonly string[],
  tokenizer: Tokenizer,
  prompt: PromptOptions = { style: "chat" },
): Promise<{ readonly episode: Episode; readonly style: PromptStyle }> {
  const style = promptStyle(environment.prompt, prompt, tokenizer);
  const sampling = { maxTokens: 200, temperature: 1 };
  const engine = saying(tokenizer, texts);
  const [group] = await rollout({
    ...{ environment, style, groupSize: 1, seed: 0, stepLimit: texts.length },
    policy: enginePolicy({ engine, tokenizer, style, sampling }),
    tasks: environment.tasks(environment.splits[0]!).slice(0, 1),
  });
  await environment.close?.();
  const [episode] = group!.episodes;
  expect(episode!.error).toBeUndefined();
  expect(episode!.steps.length).toBeGreaterThan(1);
  return { episode: episode!, style };
}

describe.each(worlds)("questions in a world of tools: %s", (_, open, texts) => {
  it.each([
    ["a template that knows tools", hermes],
    ["a template that does not", plain],
  ])("begin with the tokens that the policy read and wrote, %s", async (_name, tokenizer) => {
    const { episode, style } = await played(open(), texts, tokenizer);
    const question = worldQuestion(tokenizer, style);
    const triplets = tripletsOf([episode]);
    for (const triplet of triplets) {
      const { ids, spans } = episode.steps[triplet.step]!.sequence!;
      const seen = spans.findIndex(({ kind }) => kind === "observation");
      const asked = question.ask(triplet).ids;
      // The answer is encoded apart, so the one token at its edge may be another.
      const { start } = spans[seen]!;
      expect(asked.slice(0, start - 1)).toEqual(ids.slice(0, start - 1));
      const whole = [...asked, ...question.answer(triplet)];
      const end = spans.findLast(({ kind }) => kind === "observation")!.end;
      const read = tokenizer.decode(ids.slice(0, end));
      expect(tokenizer.decode(whole).slice(0, read.length)).toBe(read);
      expect(tokenizer.decode(asked)).toContain(toolsOf(episode)![0]!.name);
      expect(tokenizer.decode(question.answer(triplet))).toContain(nextStateOf(triplet).trim());
    }
    // Steps whose template is append-only are one sequence; in every case its beginning is the first step's.
    const { actions } = heldOutSequences(triplets, question, tokenizer, style);
    const first = episode.steps[0]!.sequence!;
    const { end } = first.spans.find(({ kind }) => kind === "action")!;
    expect(Array.from(actions[0]!.ids).slice(0, end)).toEqual(first.ids.slice(0, end));
  });

  it("are the same after the triplets were written and read", async () => {
    const { episode, style } = await played(open(), texts, hermes);
    const question = worldQuestion(hermes, style);
    const train = tripletsOf([episode]);
    const path = join(folder, "triplets.jsonl.gz");
    saveTriplets(path, { train, heldOut: [], counts: {}, reward: "none" });
    const loaded = loadTriplets(path)!;
    const back = loaded.train;
    expect(asksOtherwise(loaded, style)).toBe(false);
    expect(back.map((triplet) => question.ask(triplet).ids)).toEqual(
      train.map((triplet) => question.ask(triplet).ids),
    );
  });

  it("list the tools in prose too, if the policy reads prose", async () => {
    const said = texts.map((text) => `<think></think><action>${text}</action>`);
    const { episode, style } = await played(open(), said, hermes, { style: "full" });
    const question = worldQuestion(hermes, style);
    const [triplet] = tripletsOf([episode]);
    const asked = hermes.decode(question.ask(triplet!).ids);
    for (const { name } of toolsOf(episode)!) expect(asked).toContain(`{"name":"${name}"`);
    expect(asked).toContain("calls of tools");
    const { actions } = heldOutSequences([triplet!], question, hermes, style);
    const { ids, spans } = episode.steps[0]!.sequence!;
    const { start } = spans.find(({ kind }) => kind === "action")!;
    expect(historyOf(triplet!).tools).toHaveLength(toolsOf(episode)!.length);
    // The actions that could be taken are left out of what is asked, not of what the policy reads.
    const read = hermes.decode(ids.slice(0, start));
    if (!read.includes("Actions you can take now"))
      expect(Array.from(actions[0]!.ids).slice(0, start)).toEqual(ids.slice(0, start));
  });
});

describe("a conversation whose oldest turns are dropped", () => {
  it("is asked about as the policy read it", async () => {
    const environment = guessKind().open({});
    const texts = [2, 3, 4, 5, 2, 3].map((number) => hermesCall("guess", { number }));
    const prompt = { style: "chat", maxTokens: 260 } as const;
    const { episode, style } = await played(environment, texts, hermes, prompt);
    const question = worldQuestion(hermes, style);
    const lengths = episode.steps.map(({ prompt: pieces }) => pieces.length);
    expect(lengths.some((length, at) => at > 0 && length <= lengths[at - 1]!)).toBe(true);
    for (const triplet of tripletsOf([episode])) {
      const { ids, spans } = episode.steps[triplet.step]!.sequence!;
      const { start } = spans.find(({ kind }) => kind === "observation")!;
      expect(question.ask(triplet).ids).toEqual(ids.slice(0, start));
    }
  });
});

describe("what cannot be asked as the policy reads it is refused", () => {
  const compact = promptStyle({}, { style: "compact", history: "all" });
  const chat = promptStyle({}, { style: "chat" }, hermes);
  const step = { prompt: [], response: "", action: '{"tool":"guess","arguments":{}}' };
  const bare = { task: { id: "train/0" }, steps: [step], stop: "done" } as unknown as Episode;
  const said = (response: string): Episode =>
    ({ ...bare, steps: [{ ...step, response, action: "look" }] }) as unknown as Episode;

  it("calls of tools that the record does not list", () => {
    expect(() => checkTools(tripletsOf([bare]), chat)).toThrow(/train\/0 calls tools that its/);
    expect(() => checkTools(tripletsOf([bare]), compact)).not.toThrow();
    expect(() => checkTools(tripletsOf([said("look")]), chat)).not.toThrow();
  });

  it("triplets of an older run, where its questions were others", () => {
    const full = promptStyle({}, { style: "full" });
    const older = (episode: Episode) =>
      ({
        train: [],
        heldOut: tripletsOf([episode]),
        counts: {},
        reward: "none",
        older: true,
      }) as const;
    expect(asksOtherwise(older(bare), chat)).toBe(true);
    expect(asksOtherwise(older(bare), full)).toBe(true);
    expect(asksOtherwise(older(bare), compact)).toBe(false);
    expect(asksOtherwise(older(said("look")), chat)).toBe(false);
    expect(asksOtherwise(older(said("So.\nlook")), chat)).toBe(true);
    expect(asksOtherwise(older(said("So.\nlook")), full)).toBe(false);
    expect(asksOtherwise({ ...older(bare), older: undefined! }, chat)).toBe(false);
  });
});
