import { setTimeout as wait } from "node:timers/promises";
import type { Engine } from "@pawl/core/engine/engine.js";
import { limitOptions } from "@pawl/core/envs/limits.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { createTally, trainedShare } from "@pawl/core/rollout/tally.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { generateText, stepCountIs, tool } from "ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { Agent } from "./agent.js";
import type { AgentEnvironment } from "./agent-environment.js";
import { agentKind } from "./agent-kind.js";
import { agentPolicy } from "./agent-policy.js";
import { hermes, scripted } from "./testing.js";

interface Place {
  readonly id: string;
  readonly prompt: string;
}

const places: readonly Place[] = ["shelf", "drawer"].map((id) => ({ id, prompt: `go on ${id}` }));

/** An agent that asks once, with changes. */
const agentOf = (changes: Partial<Agent<Place>> = {}): Agent<Place> => ({
  tasks: { train: places },
  run: async ({ prompt }, model, abortSignal) =>
    (await generateText({ model, prompt, abortSignal })).text,
  reward: () => 1,
  ...changes,
});

/** A stand-in for an engine that says what it is told. */
function saying(texts: readonly string[]): Engine {
  const sampler = scripted(hermes, texts);
  return {
    capabilities: { maxContext: 512, vocabularySize: hermes.vocabularySize },
    sample: (requests: readonly Parameters<typeof sampler.sample>[0][]) =>
      Promise.all(requests.map(async (request) => [await sampler.sample(request)])),
  } as unknown as Engine;
}

interface Played {
  readonly agent?: Agent<Place>;
  readonly engine?: Engine;
  readonly groupSize?: number;
  readonly batch?: number;
  readonly limits?: object;
  readonly stepLimit?: number;
  readonly signal?: AbortSignal;
}

async function played(options: Played = {}): Promise<readonly Episode[]> {
  const { agent = agentOf(), engine = saying([]), groupSize = 1, batch, signal } = options;
  const kind = agentKind(agent as unknown as Agent, "places");
  const environment = kind.open({}) as AgentEnvironment;
  Object.assign(environment, { limits: limitOptions.parse(options.limits) });
  const sampling = { maxTokens: 24, temperature: 1 };
  const groups = await rollout({
    environment,
    policy: agentPolicy({ environment, engine, tokenizer: hermes, sampling, batch }),
    style: promptStyle({}, { style: "chat" }),
    tasks: environment.tasks("train"),
    groupSize,
    seed: 5,
    ...(options.stepLimit !== undefined && { stepLimit: options.stepLimit }),
    ...(signal !== undefined && { signal }),
  });
  return groups.flatMap(({ episodes }) => episodes);
}

describe("a run", () => {
  it("is recorded with its task, what it returned, why it was rewarded, and every token", async () => {
    const answer = { at: "shelf", list: [1] };
    const call = '<tool_call>{"name": "look", "arguments": {"place": "a"}}</tool_call>';
    const looking = tool({ inputSchema: z.object({ place: z.string() }), execute: () => "seen" });
    const [episode] = await played({
      engine: saying([call, "on", "enough"]),
      agent: agentOf({
        tasks: { train: places.slice(0, 1) },
        run: async ({ prompt }, model) => {
          const stopWhen = stepCountIs(2);
          await generateText({ model, prompt, tools: { look: looking }, stopWhen });
          await generateText({ model, prompt: "go on: a title" });
          return answer;
        },
        reward: () => ({ reward: 0.5, why: "half of it" }),
        filter: ({ messages }) => !messages[0]!.content.includes("title"),
      }),
    });
    expect(episode).toMatchObject({
      ...{ given: places[0], result: answer, why: "half of it", return: 0.5, success: false },
      untrained: { filtered: hermes.encode("enough", { plain: true }).length + 1 },
    });
    expect(episode!.steps[0]!.calls).toEqual([
      { tool: "look", arguments: '{"place":"a"}', result: "seen" },
    ]);
    expect(episode!.steps.every(({ seconds }) => seconds! >= 0)).toBe(true);
    const tally = createTally();
    tally.add(episode!);
    const { sampled, untrained } = tally.tokens;
    expect([...untrained]).toEqual(Object.entries(episode!.untrained!));
    const written = [call, "on", "enough"].map((text) => hermes.encode(text, { plain: true }));
    expect(sampled).toBe(written.flat().length + 3);
    expect(trainedShare(tally.tokens)).toBeCloseTo(1 - (written[2]!.length + 1) / sampled);
  });

  it("is an episode with a step for each call, and the reward on the last", async () => {
    const looking = tool({
      inputSchema: z.object({ place: z.string() }),
      execute: async ({ place }) => `seen ${place}`,
    });
    const seen: unknown[] = [];
    const [episode] = await played({
      engine: saying([
        '<tool_call>{"name": "look", "arguments": {"place": "a"}}</tool_call>',
        "on",
      ]),
      agent: agentOf({
        tasks: { train: places.slice(0, 1) },
        run: async ({ prompt }, model) =>
          (
            await generateText({
              model,
              system: "Be brief.",
              prompt,
              tools: { look: looking },
              stopWhen: stepCountIs(3),
            })
          ).text,
        reward: async ({ task, result, messages, calls }) => {
          await wait(1);
          seen.push(
            task,
            result,
            messages.map(({ role }) => role),
            calls.length,
          );
          return { reward: 0.5, success: false, score: 0.25 };
        },
      }),
    });
    expect(seen).toEqual([
      places[0],
      "on",
      ["system", "user", "assistant", "tool", "assistant"],
      2,
    ]);
    expect(episode).toMatchObject({
      task: { id: "train/shelf", type: "task" },
      goal: "go on shelf",
      return: 0.5,
      score: 0.25,
      success: false,
      stop: "done",
    });
    expect(episode!.steps).toMatchObject([
      { action: '{"tool":"look","arguments":{"place":"a"}}', observation: "seen a", reward: 0 },
      { action: "on", observation: "", reward: 0.5, wellFormed: true, valid: true },
    ]);
    expect(episode!.steps[1]!.prompt.map(({ origin }) => origin)).toEqual([
      "tools",
      "system",
      "history",
      "history",
      "observation",
    ]);
  });

  it("that forks has each fork as a sequence of its own, with the same return", async () => {
    const [episode] = await played({
      agent: agentOf({
        tasks: { train: places.slice(0, 1) },
        async run({ prompt }, model) {
          const first = await generateText({ model, prompt });
          const ask = (content: string) =>
            generateText({
              model,
              messages: [
                { role: "user", content: prompt },
                ...first.response.messages,
                { role: "user", content },
              ],
            });
          await Promise.all([
            ask("left"),
            generateText({ model, prompt: "a title" }),
            ask("right"),
          ]);
        },
        filter: ({ messages }) => messages[0]!.content !== "a title",
      }),
    });
    const { steps, return: total } = episode!;
    expect(total).toBe(1);
    // The main conversation first, then the fork; the title is no turn of the agent.
    expect(steps.map(({ prompt }) => prompt.at(-1)!.text)).toEqual([
      "go on shelf",
      "left",
      "right",
    ]);
    const [first, left, right] = steps.map(({ sequence }) => sequence!);
    expect(left!.ids.slice(0, first!.ids.length)).toEqual(first!.ids);
    const end = first!.spans.find(({ kind }) => kind === "action")!.end;
    expect(right!.ids.slice(0, end)).toEqual(first!.ids.slice(0, end));
    // Listed in the order of time; what the program asked first, and what the fork acted on, is said.
    expect(steps.map(({ time, seen }) => [time, seen])).toEqual([
      [undefined, "go on shelf"],
      [undefined, undefined],
      [undefined, "right"],
    ]);
  });

  it("that asks a helper in between says when each step was taken and what it acted on", async () => {
    const [episode] = await played({
      agent: agentOf({
        tasks: { train: places.slice(0, 1) },
        async run({ prompt }, model) {
          const first = await generateText({ model, prompt });
          const { text } = await generateText({
            ...{ model, system: "You help.", prompt: "where is it?" },
          });
          await generateText({
            model,
            messages: [
              { role: "user", content: prompt },
              ...first.response.messages,
              { role: "user", content: `Someone says: ${text}` },
            ],
          });
        },
      }),
    });
    const { steps } = episode!;
    expect(steps.map(({ prompt }) => prompt.at(-1)!.text)).toEqual([
      "go on shelf",
      "Someone says: enough",
      "where is it?",
    ]);
    expect(steps.map(({ time, seen, reward }) => [time, seen, reward])).toEqual([
      [0, "go on shelf", 0],
      [2, undefined, 1],
      [1, "where is it?", 0],
    ]);
  });
});

describe("an agent that goes wrong", () => {
  const only = async (changes: Partial<Agent<Place>>, more: Played = {}): Promise<Episode> => {
    // Another task that works: the rollout goes on.
    const own = agentOf();
    const agent = agentOf({
      ...changes,
      run: (task, model, signal): unknown =>
        (task.id === "shelf" ? (changes.run ?? own.run) : own.run)(task, model, signal),
      reward: (run, signal): ReturnType<Agent<Place>["reward"]> =>
        (run.task.id === "shelf" ? (changes.reward ?? own.reward) : own.reward)(run, signal),
    });
    const [episode, other] = await played({ agent, ...more });
    expect(other).toMatchObject({ stop: "done", return: 1 });
    return episode!;
  };

  const wrong: readonly (readonly [string, Partial<Agent<Place>>, RegExp])[] = [
    ["throws", { run: () => Promise.reject(new Error("boom")) }, /^boom$/],
    ["does not ask", { run: () => 3 }, /did not call the model/],
    ["has a bad reward", { reward: () => Number.NaN }, /reward is NaN: expected a finite number/],
    [
      "has a bad score",
      { reward: () => ({ reward: 1, success: true, score: Number.NaN }) },
      /score: NaN }: .* finite numbers$/,
    ],
    [
      "throws what cannot be read",
      { run: () => Promise.reject(Object.create(null)) },
      /^an error that cannot be read$/,
    ],
    ["has too large a reward", { reward: () => 2 }, /is 2, above its maxReturn of 1/],
    ["has a reward that fails", { reward: () => Promise.reject(new Error("mute")) }, /mute/],
  ];
  it.each(wrong)("%s: a broken episode", async (_, changes, error) => {
    const episode = await only(changes);
    expect(episode).toMatchObject({ stop: "broken", return: 0 });
    expect(episode.error).toMatch(error);
  });

  it("has a filter that fails: a broken episode with all of its steps", async () => {
    const episode = await only({
      filter({ messages: [asked] }) {
        if (asked!.content === "go on shelf") throw new Error("no filter");
        return true;
      },
    });
    expect(episode).toMatchObject({ stop: "broken", return: 0, error: "no filter" });
    expect(episode.steps).toHaveLength(1);
  });

  it("hangs: a broken episode, and its program is told", async () => {
    let told: unknown;
    const episode = await only(
      {
        run: (_, __, signal) =>
          new Promise(() => {
            signal.addEventListener("abort", () => {
              told = signal.reason;
            });
          }),
      },
      { limits: { stepSeconds: 1 } },
    );
    expect(episode.error).toMatch(/did not ask the model for longer than env.limits.stepSeconds/);
    expect(told).toBeInstanceOf(Error);
  });

  it("never stops: an episode that reached its limit and failed", async () => {
    const episode = await only(
      {
        async run({ prompt }, model) {
          for (;;) await generateText({ model, prompt });
        },
      },
      { stepLimit: 3 },
    );
    expect(episode).toMatchObject({ stop: "step-limit", return: 0, success: false });
    expect(episode.steps).toHaveLength(3);
  });

  it("asks on after its end: it is refused", async () => {
    let late: Promise<unknown> | undefined;
    await only({
      async run({ prompt }, model) {
        const { text } = await generateText({ model, prompt });
        late = wait(20).then(() => generateText({ model, prompt }));
        late.catch(() => undefined);
        return text;
      },
    });
    await expect(late).rejects.toThrow("the session has ended");
  });

  it("breaks every episode: the rollout ends with the first reason", async () => {
    const agent = agentOf({ run: () => Promise.reject(new Error("boom")) });
    await expect(played({ agent })).rejects.toThrow(/all 2 episodes broke.*train\/.*boom/);
  });
});

it("an engine that fails ends the rollout, even if the agent hides it", async () => {
  const engine = { ...saying([]), sample: () => Promise.reject(new Error("out of memory")) };
  const agent = agentOf({
    run: ({ prompt }, model) => generateText({ model, prompt }).catch(() => "fine"),
  });
  await expect(played({ agent, engine })).rejects.toThrow(/failed twice in a row: out of memory/);
});

it("is interrupted at once", async () => {
  const stop = new AbortController();
  const agent = agentOf({ run: () => new Promise(() => undefined) });
  const playing = played({ agent, signal: stop.signal });
  stop.abort(new Error("enough"));
  await expect(playing).rejects.toThrow("enough");
});

describe("with a real model", () => {
  let engine: Engine;
  beforeAll(async () => {
    const { vocabularySize } = hermes;
    const model = { preset: "tiny", vocabularySize, maxContext: 512 } as const;
    engine = await createEmbeddedEngine({ model, threads: 1 });
  });
  afterAll(() => engine.dispose());

  it("plays the same episodes in batches of any size", async () => {
    const agent = agentOf({
      async run({ prompt }, model) {
        const { text } = await generateText({ model, prompt });
        await generateText({ model, prompt: `${text} again` });
      },
    });
    const together = await played({ agent, engine, groupSize: 3 });
    const apart = await played({ agent, engine, groupSize: 3, batch: 1 });
    expect(apart.map(({ steps }) => steps.map(({ sequence }) => sequence!.ids))).toEqual(
      together.map(({ steps }) => steps.map(({ sequence }) => sequence!.ids)),
    );
    const responses = together.map(({ steps }) => steps[0]!.response);
    expect(new Set(responses).size).toBe(6);
  });
});
