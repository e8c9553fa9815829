import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import type { ActingEngine, Capabilities } from "../engine/engine.js";
import type { Environment, RemoteEnv, Task } from "../envs/env.js";
import { promptStyle } from "../text/prompt.js";
import { createGate } from "./gate.js";
import type { Policy } from "./policy.js";
import { createRollouts, type StragglerOptions } from "./stragglers.js";

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

function rollouts(held: readonly string[], options: StragglerOptions) {
  const world = worlds(held);
  const engine: ActingEngine = {
    capabilities: {} as Capabilities,
    sample: async (requests) =>
      requests.map(() => [{ tokens: [1], logprobs: [0], stopReason: "stop" }]),
  };
  const gate = createGate(engine, 100);
  const policy: Policy = {
    name: "on",
    batch: 1,
    async act() {
      await gate.engine.sample([{ prompt: [1], maxTokens: 1, seed: 0 }]);
      return [{ response: "on" }];
    },
  };
  const style = promptStyle(undefined, { style: "compact" });
  const played = createRollouts(gate, options);
  const common = { environment: world.environment, policy, style, groupSize: 2, seed: 0 };
  return {
    ...world,
    played,
    play: (some: readonly Task[]) => played.play({ ...common, tasks: some }),
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
