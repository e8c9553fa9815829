import { setImmediate, setTimeout as wait } from "node:timers/promises";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { worldTexts } from "@pawl/training/world-text.js";
import { expect, it } from "vitest";
import type { ActingEngine, Capabilities } from "../engine/engine.js";
import type { Env, Environment, RemoteEnv, Task } from "../envs/env.js";
import { housePrompt } from "../envs/household/prompt.js";
import { openEnvironment } from "../envs/open.js";
import { promptStyle } from "../text/prompt.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import type { PaceOptions } from "./pace.js";
import { enginePolicy } from "./policies/engine.js";
import type { Policy } from "./policy.js";
import { rollout } from "./rollout.js";
import { createRollouts } from "./rollouts.js";

const tasks: readonly Task[] = Array.from({ length: 10 }, (_, i) => ({
  id: `train/${i}`,
  split: "train",
  type: "steps",
}));

/** Worlds of two steps; those of the held tasks answer the second one when the test says so. */
function worlds(held: readonly string[]) {
  const waiting: (() => void)[] = [];
  const closed: string[] = [];
  const environment: Environment = {
    name: "steps",
    splits: ["train"],
    stepLimit: 5,
    maxReturn: 1,
    tasks: () => tasks,
    task: (id) => tasks.find((task) => task.id === id)!,
    create(): RemoteEnv {
      let id = "";
      let steps = 0;
      return {
        goal: "go on",
        taskType: "steps",
        reset: async (task) => {
          id = task.id;
          return "start";
        },
        async step() {
          steps += 1;
          if (steps === 2 && held.includes(id))
            await new Promise<void>((resolve) => waiting.push(resolve));
          const success = steps === 2;
          const info = { valid: true, success };
          return { observation: `step ${steps}`, reward: success ? 1 : 0, done: success, info };
        },
        close: async () => void closed.push(id),
      };
    },
  };
  const release = (): void => {
    for (const go of waiting.splice(0)) go();
  };
  return { environment, closed, waiting, release };
}

function rollouts(held: readonly string[], options: Omit<PaceOptions, "pace" | "rows">) {
  const world = worlds(held);
  const engine: ActingEngine = {
    capabilities: {} as Capabilities,
    sample: async (requests) =>
      requests.map(() => [{ tokens: [1], logprobs: [0], stopReason: "stop" }]),
  };
  const played = createRollouts(engine, { pace: "own", rows: 100, ...options });
  const policy: Policy = {
    name: "on",
    batch: 1,
    async act() {
      await played.engine.sample([{ prompt: [1], maxTokens: 1, seed: 0 }]);
      return [{ response: "on" }];
    },
  };
  const style = promptStyle(undefined, { style: "compact" });
  const common = { environment: world.environment, policy, style, groupSize: 2, seed: 0 };
  return {
    ...world,
    played,
    play: async (some: readonly Task[]) => (await played.play({ ...common, tasks: some })).groups,
  };
}

it("waits for everybody if no limit is set", async () => {
  const { play, waiting, closed, release } = rollouts(["train/9"], {});
  const playing = play(tasks);
  while (closed.length < 18 || waiting.length < 2) await setImmediate();
  release();
  const stops = (await playing).flatMap(({ episodes }) => episodes.map(({ stop }) => stop));
  expect(stops).toEqual(Array(20).fill("done"));
});

it("breaks those that are late, with the reason, and closes their worlds", async () => {
  const { play, played, closed } = rollouts(["train/9"], { stragglerSeconds: 0.05 });
  const groups = await play(tasks);
  expect(groups.length).toBe(10);
  expect(played.carried).toBe(0);
  const stops = groups.map(({ episodes }) => episodes.map(({ stop }) => stop));
  expect(stops.slice(0, 9).flat()).toEqual(Array(18).fill("done"));
  expect(stops[9]).toEqual(["broken", "broken"]);
  expect(groups[9]!.episodes[0]!.error).toMatch(/not over 0\.05 s after nine tenths/);
  expect(closed.length).toBe(20);
});

it("carries their groups over, which are learnt with the next update", async () => {
  const carry = { stragglerSeconds: 0.05, stragglers: "carry" } as const;
  const { play, played, release } = rollouts(["train/9"], carry);
  const first = await play(tasks);
  expect(first.map(({ task }) => task.id)).toEqual(tasks.slice(0, 9).map(({ id }) => id));
  expect(played.carried).toBe(1);
  const next = play(tasks.slice(0, 3));
  release();
  const second = await next;
  expect(second.map(({ task }) => task.id).slice(0, 3)).toEqual(["train/0", "train/1", "train/2"]);
  expect(played.carried).toBe(0);
  const carried = second[3]!;
  expect(carried).toMatchObject({ index: 3, task: { id: "train/9" } });
  expect(carried.episodes.map(({ group, attempt }) => [group, attempt])).toEqual([
    [3, 0],
    [3, 1],
  ]);
});

it("breaks what is not over in the next update either", async () => {
  const carry = { stragglerSeconds: 0.05, stragglers: "carry" } as const;
  const { play, played } = rollouts(["train/9"], carry);
  await play(tasks);
  const second = await play(tasks.slice(0, 3));
  expect(second[3]!.episodes.map(({ stop }) => stop)).toEqual(["broken", "broken"]);
  expect(second[3]!.episodes[0]!.error).toMatch(/nor in the next update/);
  expect(played.carried).toBe(0);
});

it("closes the worlds that were carried over when the run ends", async () => {
  const carry = { stragglerSeconds: 0.05, stragglers: "carry" } as const;
  const { play, played, closed } = rollouts(["train/9"], carry);
  await play(tasks);
  expect(closed.length).toBe(18);
  await played.end();
  expect(closed.length).toBe(20);
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
    const rollouts = createRollouts(engine, { pace: "own", rows: 4 });
    const policy = policyOf(rollouts.engine, rollouts.batch);
    const { groups: own, pace } = await rollouts.play({ ...common, environment: late, policy });
    const { calls, rows } = pace!;
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
