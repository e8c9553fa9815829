import { setImmediate, setTimeout as wait } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createEmbeddedEngine } from "../engine/embedded/embedded-engine.js";
import type { ActingEngine, Capabilities, Sample, SampleRequest } from "../engine/engine.js";
import type { Env, Environment, RemoteEnv } from "../envs/env.js";
import { housePrompt } from "../envs/household/prompt.js";
import { openEnvironment } from "../envs/open.js";
import { promptStyle } from "../text/prompt.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { worldTexts } from "../train/world-text.js";
import { createGate } from "./gate.js";
import { enginePolicy } from "./policies/engine.js";
import { rollout } from "./rollout.js";
import { createRollouts } from "./stragglers.js";

const request = (id: number, more: Partial<SampleRequest> = {}): SampleRequest => ({
  ...{ prompt: [id], maxTokens: 1, seed: id, ...more },
});
const answer = (asked: SampleRequest): readonly Sample[] => [
  { tokens: [asked.prompt[0]!], logprobs: [0], stopReason: "stop" },
];

/** An engine whose calls end when the test says so; each answers with its prompt. */
function heldEngine(capabilities: Partial<Capabilities> = {}) {
  const calls: { readonly requests: readonly SampleRequest[]; end(error?: Error): void }[] = [];
  const engine: ActingEngine = {
    capabilities: capabilities as Capabilities,
    sample: (requests) =>
      new Promise((resolve, reject) => {
        const end = (error?: Error): void =>
          error === undefined ? resolve(requests.map(answer)) : reject(error);
        calls.push({ requests, end });
      }),
  };
  return { engine, calls };
}

/** Lets everything happen that needs no time. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await setImmediate();
}

const idsOf = (requests: readonly SampleRequest[]): readonly number[] =>
  requests.map(({ prompt }) => prompt[0]!);

describe("the gate", () => {
  it("samples whoever waits when the engine is free, the oldest first, and answers each", async () => {
    const { engine, calls } = heldEngine();
    const gate = createGate(engine, 2);
    const answers = [1, 2, 3].map((id) => gate.engine.sample([request(id)]));
    await settle();
    expect(calls.map(({ requests }) => idsOf(requests))).toEqual([[1, 2]]);
    answers.push(gate.engine.sample([request(4)]), gate.engine.sample([request(5)]));
    await settle();
    // The engine is still at work.
    expect(calls.length).toBe(1);
    for (const at of [0, 1, 2]) {
      calls[at]!.end();
      await settle();
    }
    expect(calls.map(({ requests }) => idsOf(requests))).toEqual([[1, 2], [3, 4], [5]]);
    const tokens = (await Promise.all(answers)).map(([samples]) => samples![0]!.tokens[0]);
    expect(tokens).toEqual([1, 2, 3, 4, 5]);
    expect(gate.load()).toMatchObject({ calls: 3, rows: 5 });
    expect(gate.load()).toMatchObject({ calls: 0, rows: 0 });
  });

  it("fails those that were sampled together, and goes on with the others", async () => {
    const { engine, calls } = heldEngine();
    const gate = createGate(engine, 2);
    const answers = [1, 2, 3].map((id) => gate.engine.sample([request(id)]));
    const ends = Promise.allSettled(answers);
    await settle();
    calls[0]!.end(new Error("out of memory"));
    await settle();
    calls[1]!.end();
    expect((await ends).map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
  });

  it("samples nothing while it is closed", async () => {
    const { engine, calls } = heldEngine();
    const gate = createGate(engine, 2);
    gate.close();
    void gate.engine.sample([request(1)]);
    await settle();
    expect(calls.length).toBe(0);
    gate.open();
    await settle();
    expect(calls.length).toBe(1);
  });

  it("tells the engine that rows which came together do not continue together", async () => {
    const { engine, calls } = heldEngine();
    const gate = createGate(engine, 4);
    void gate.engine.sample([request(1, { continued: true })]);
    void gate.engine.sample([request(2)]);
    await settle();
    expect(calls[0]!.requests.map(({ continued }) => continued)).toEqual(["apart", undefined]);
  });

  it("passes requests on as they come to a server that batches by itself, within its limit", async () => {
    const { engine, calls } = heldEngine({ otherSampler: true });
    const gate = createGate(engine, 2);
    for (const id of [1, 2, 3]) void gate.engine.sample([request(id)]);
    await settle();
    expect(calls.map(({ requests }) => idsOf(requests))).toEqual([[1], [2]]);
    calls[1]!.end();
    await settle();
    expect(calls.map(({ requests }) => idsOf(requests))).toEqual([[1], [2], [3]]);
  });

  it("starts episodes until the engine's batch is full, and none while more wait", async () => {
    const { engine, calls } = heldEngine();
    const gate = createGate(engine, 2);
    let inside = 0;
    for (let one = 0; one < 9; one++) void gate.admission.enter().then(() => inside++);
    await settle();
    expect(inside).toBe(2);
    // Both ask, and nobody waits behind them: there is room for two more.
    for (const id of [1, 2]) void gate.engine.sample([request(id)]);
    await settle();
    calls[0]!.end();
    await settle();
    expect(inside).toBe(4);
    // All four ask, one by one, and the two that were answered ask again: enough.
    for (const id of [1, 2, 3, 4, 5, 6]) void gate.engine.sample([request(id)]);
    await settle();
    calls[1]!.end();
    await settle();
    expect(inside).toBe(4);
    gate.admission.leave();
    await settle();
    // Four still wait for a batch of two, so one that ends is not replaced.
    expect(inside).toBe(4);
  });
});

const rooms = openEnvironment({ name: "household", rooms: 1, receptacles: 4, objects: 3 });
const style = promptStyle(housePrompt, { style: "compact", history: "all" });

/** Worlds that answer after some milliseconds, others in every run. */
const late: Environment = {
  ...rooms,
  create(): RemoteEnv {
    const world = rooms.create() as Env;
    const pause = (): Promise<void> => wait(8 * Math.random());
    return {
      get goal() {
        return world.goal;
      },
      get taskType() {
        return world.taskType;
      },
      reset: (task, seed) => pause().then(() => world.reset(task, seed!)),
      step: (action) => pause().then(() => world.step(action)),
      admissibleActions: () => world.admissibleActions!(),
      close: async () => undefined,
    };
  },
};

it("plays the same episodes at their own pace as together, whoever is sampled with them", async () => {
  const tokenizer = buildTokenizer(await worldTexts(rooms, style));
  const { vocabularySize } = tokenizer;
  const model = { preset: "tiny", vocabularySize, maxContext: 512 } as const;
  const engine = await createEmbeddedEngine({ model, threads: 1 });
  try {
    const tasks = rooms.tasks("train").slice(0, 4);
    const common = { style, tasks, groupSize: 3, seed: 5, stepLimit: 4 };
    const sampling = { maxTokens: 6, temperature: 1 };
    const policyOf = (acting: ActingEngine, batch?: number) =>
      enginePolicy({ engine: acting, tokenizer, style, sampling, ...(batch && { batch }) });
    const together = await rollout({ ...common, environment: rooms, policy: policyOf(engine) });
    const gate = createGate(engine, 4);
    const own = await createRollouts(gate, {}).play({
      ...{ ...common, environment: late, policy: policyOf(gate.engine, 1) },
    });
    const { calls, rows } = gate.load();
    expect(rows).toBe(4 * 3 * 4);
    expect(calls).toBeGreaterThan(rows / 4);
    own.forEach(({ episodes }, g) => {
      episodes.forEach(({ seed, steps }, e) => {
        const other = together[g]!.episodes[e]!;
        expect(seed).toBe(other.seed);
        steps.forEach(({ sequence }, s) => {
          const before = other.steps[s]!.sequence!;
          expect(sequence!.ids).toEqual(before.ids);
          sequence!.logprobs!.forEach((logprob, i) => {
            expect(logprob).toBeCloseTo(before.logprobs![i]!, 4);
          });
        });
      });
    });
  } finally {
    await engine.dispose();
  }
});
