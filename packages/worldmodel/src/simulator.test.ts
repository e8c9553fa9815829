import { type Engine, EngineError } from "@pawl/core/engine/engine.js";
import { housePrompt } from "@pawl/core/envs/household/prompt.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import type { Policy } from "@pawl/core/rollout/policy.js";
import { play, rollout } from "@pawl/core/rollout/rollout.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { describe, expect, it } from "vitest";
import {
  consistencyRates,
  divergenceOf,
  measureConsistency,
  ratioInterval,
  replay,
} from "./consistency.js";
import { engineWorldModel, type Prediction, type WorldModel } from "./model.js";
import { openPlayer } from "./players.js";
import { protocolOptions } from "./protocol.js";
import { createSimulator, type SimulatorEnv } from "./simulator.js";
import { oneRoom, oracleModel, someTrajectories } from "./testing.js";
import { textsOf } from "./train.js";

const environment = oneRoom();
const tasks = environment.tasks("train").slice(0, 12);
const style = promptStyle(housePrompt, { style: "compact", history: "all" });

/** A policy that always gives the same response. */
const stubborn: Policy = {
  name: "stubborn",
  batch: Number.POSITIVE_INFINITY,
  act: async (situations) => situations.map(({ format }) => ({ response: format("look") })),
};

/** A model that answers every action the same way. */
const saying = (prediction: Prediction): WorldModel => ({
  name: "parrot",
  predict: async (queries) => queries.map(() => prediction),
});
const seen = { observation: "a room", done: false, success: false };

async function playIn(model: WorldModel, more: object = {}) {
  const simulator = createSimulator({ environment, model, ...more });
  const groups = await rollout({
    environment: simulator.environment,
    policy: stubborn,
    style,
    tasks: tasks.slice(0, 3),
    groupSize: 1,
    seed: 0,
    stepLimit: 4,
  });
  return { simulator, episodes: groups.flatMap(({ episodes }) => episodes) };
}

describe("a world model as an environment", () => {
  it("whose engine fails ends the rollout, and breaks no episode", async () => {
    const protocol = protocolOptions.parse({});
    const tokenizer = buildTokenizer(textsOf(await someTrajectories(), protocol));
    const capabilities = { vocabularySize: tokenizer.vocabularySize, maxContext: 512 };
    let calls = 0;
    const sample = async (): Promise<never> => {
      calls += 1;
      throw new EngineError("out of memory");
    };
    const engine = { capabilities, sample } as unknown as Engine;
    const model = engineWorldModel({ engine, tokenizer, protocol, maxTokens: 8 });
    await expect(playIn(model)).rejects.toThrow(/failed twice in a row: out of memory/);
    expect(calls).toBe(2);
  });

  it("starts like the real one, and ends on its marker of success", async () => {
    const { simulator, episodes } = await playIn(saying({ ...seen, done: true, success: true }));
    expect(episodes).toHaveLength(3);
    for (const { success, stop, steps, firstObservation, goal, ...rest } of episodes) {
      expect({ success, stop, steps: steps.length }).toEqual({
        success: true,
        stop: "done",
        steps: 1,
      });
      expect(rest.return).toBe(environment.maxReturn);
      const env = environment.create();
      expect(await env.reset(rest.task)).toBe(firstObservation);
      expect(env.goal).toBe(goal);
    }
    expect([...simulator.endings]).toEqual([["success", 3]]);
  });

  it("continues to the step limit if the model does not end it", async () => {
    const { simulator, episodes } = await playIn(saying(seen));
    expect(episodes.map(({ stop }) => stop)).toEqual(Array(3).fill("step-limit"));
    expect(simulator.endings.size).toBe(0);
  });

  it.each(["empty", "loop", "endless", "context"] as const)(
    "ends on degenerate output (%s), which is not a success and is counted",
    async (degeneration) => {
      const { simulator, episodes } = await playIn(saying({ ...seen, degeneration }));
      expect(episodes.map(({ stop, success }) => [stop, success])).toEqual(
        Array(3).fill(["done", false]),
      );
      expect([...simulator.endings]).toEqual([[degeneration, 3]]);
    },
  );

  it("uses real answers where it is anchored", async () => {
    const anchor = { every: 2, actions: [] };
    const { simulator, episodes } = await playIn(saying(seen), { anchor });
    const real = environment.create();
    await real.reset(tasks[0]!);
    const { observation } = await real.step("look");
    expect(episodes[0]!.steps.map((step) => step.observation)).toEqual([
      "a room",
      observation,
      "a room",
      observation,
    ]);
    expect(simulator.anchored()).toBe(6);
    const byAction = await playIn(saying(seen), { anchor: { every: 0, actions: ["loo"] } });
    expect(byAction.simulator.anchored()).toBe(12);
  });

  it("breaks, and does not count as a failure, if the model cannot be asked", async () => {
    const gone: WorldModel = {
      name: "gone",
      predict: async () => {
        throw new Error("the server is gone");
      },
    };
    await expect(playIn(gone)).rejects.toThrow(/^all 3 episodes broke\..*the server is gone$/);
  });

  it("asks the model for all episodes of a step together", async () => {
    const sizes: number[] = [];
    const counting: WorldModel = {
      name: "counting",
      predict: async (queries) => {
        sizes.push(queries.length);
        return queries.map(() => seen);
      },
    };
    await playIn(counting);
    expect(sizes).toEqual([3, 3, 3, 3]);
  });

  it("rejects steps outside an episode", async () => {
    const simulator = createSimulator({ environment, model: saying({ ...seen, done: true }) });
    const env = simulator.environment.create() as SimulatorEnv;
    await expect(env.step("look")).rejects.toThrow(/step was called after the end/);
    expect(() => env.goal).toThrow(/call reset/);
    await env.reset(tasks[0]!);
    await env.step("look");
    await expect(env.step("look")).rejects.toThrow(/step was called after the end/);
    await env.close();
  });
});

describe("consistency", () => {
  const model = oracleModel(environment, "train");

  it.each(["expert", "epsilon=0.5", "random"])(
    "of %s in a perfect model is perfect",
    async (text) => {
      const player = await openPlayer(text, environment);
      const options = { environment, model, player, tasks, seed: 1, stepLimit: 10 };
      const result = await measureConsistency(options);
      expect(result.cases).toHaveLength(12);
      const { real, wm, w2r } = consistencyRates(result.cases);
      expect([wm, w2r]).toEqual([real, real]);
      expect(divergenceOf(result.cases)).toMatchObject({ never: 1, steps: [] });
      if (text === "expert") expect(real).toBe(1);
    },
  );

  it.each([
    ["off", undefined],
    ["status", 1],
  ])("is measured in a terminal, whose noise (%s) no model can know", async (noise, divergence) => {
    const terminal = openEnvironment({ name: "terminal", kinds: ["chain"], noise });
    const player = await openPlayer("expert", terminal);
    const { cases, broken } = await measureConsistency({
      ...{ environment: terminal, model: oracleModel(terminal, "valid"), player, seed: 1 },
      tasks: terminal.tasks("valid").slice(0, 3),
    });
    expect(broken).toBe(0);
    for (const one of cases) {
      expect(one).toMatchObject({ real: true, wm: true, w2r: true });
      expect(one.divergence).toBe(divergence);
    }
  });

  it("shows a model that calls everything a success", async () => {
    const player = await openPlayer("expert", environment);
    const optimist = saying({ observation: "Done.", done: true, success: true });
    const options = { environment, model: optimist, player, tasks, seed: 1, stepLimit: 10 };
    const { cases, endings } = await measureConsistency(options);
    expect(consistencyRates(cases)).toEqual({ real: 1, wm: 1, w2r: 0, cr: 0 });
    expect(divergenceOf(cases)).toMatchObject({ never: 0, median: 1 });
    expect(endings).toEqual({ success: 12 });
    expect(ratioInterval(cases)).toEqual([0, 0]);
  });

  it("has no ratio if nothing succeeds", () => {
    const cases = [{ task: "t", real: false, wm: true, w2r: false, steps: 1 }];
    expect(consistencyRates(cases).cr).toBeNaN();
    expect(ratioInterval(cases)).toBeUndefined();
  });

  it("finds the first step at which model and world differ", async () => {
    const player = await openPlayer("expert", environment);
    const episodes: Parameters<typeof replay>[2][] = [];
    await play({
      environment,
      policy: player.policy,
      style,
      tasks: tasks.slice(0, 1),
      groupSize: 1,
      seed: 0,
      onEpisode: (episode) => void episodes.push(episode),
    });
    const [whole] = episodes;
    const steps = whole!.steps.map((step, at) => (at === 2 ? { ...step, observation: "?" } : step));
    expect(await replay(environment, tasks[0]!, whole!)).toEqual({
      success: true,
      divergence: undefined,
    });
    // A world that cannot be closed has been played all the same.
    const close = () => Promise.reject(new Error("cannot close"));
    const create = () => Object.setPrototypeOf({ close }, environment.create());
    expect(await replay({ ...environment, create }, tasks[0]!, whole!)).toMatchObject({
      success: true,
    });
    expect(await replay(environment, tasks[0]!, { ...whole!, steps })).toEqual({
      success: true,
      divergence: 3,
    });
  });
});

it("rejects an unknown player", async () => {
  await expect(openPlayer("expret", environment)).rejects.toThrow(
    /"expret" is not a policy: expected/,
  );
  const { expert: _, ...without } = environment;
  await expect(openPlayer("epsilon=0.5", without)).rejects.toThrow(/has no expert/);
});
