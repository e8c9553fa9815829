import { describe, expect, it } from "vitest";
import type { Env, RemoteEnv, Task } from "../../envs/env.js";
import type { Policy, Situation } from "../policy.js";
import { expertPolicy } from "./config.js";
import { epsilonPolicy, randomPolicy } from "./random.js";

const task: Task = { id: "train/0", split: "train", type: "pick" };
const facts = {
  goal: "reach 3",
  taskType: "count",
  irreversible: () => false,
  initialContext: () => undefined,
};
const env: Env = {
  ...facts,
  reset: () => "0",
  step: () => ({ observation: "", reward: 0, done: false, info: { valid: true, success: false } }),
  clone: () => env,
};
const remote: RemoteEnv = {
  ...facts,
  reset: async () => "0",
  step: async (action) => env.step(action),
  close: async () => undefined,
};

function situation(seed: number, changes: Partial<Situation> = {}): Situation {
  return {
    task,
    group: 0,
    attempt: 0,
    index: 0,
    goal: "reach 3",
    observation: "0",
    firstObservation: "0",
    steps: [],
    admissible: ["a", "b", "c", "d"],
    prompt: [],
    seed,
    env,
    format: (action) => `[${action}]`,
    ...changes,
  };
}

const many = Array.from({ length: 4000 }, (_, seed) => situation(seed));

describe("the expert", () => {
  it("formats the action of the environment's expert", async () => {
    const replies = await expertPolicy((world) => world.goal).act([situation(1), situation(2)]);
    expect(replies).toEqual([{ response: "[reach 3]" }, { response: "[reach 3]" }]);
  });

  it("plays a world behind a server, if its environment has a teacher for it", async () => {
    const teacher = (world: RemoteEnv): string => `close ${typeof world.close}`;
    const replies = await expertPolicy(teacher).act([situation(1, { env: remote })]);
    expect(replies).toEqual([{ response: "[close function]" }]);
  });
});

describe("the random policy", () => {
  it("takes every admissible action about equally often, and is reproducible", async () => {
    const replies = await randomPolicy(7).act(many);
    for (const name of ["[a]", "[b]", "[c]", "[d]"]) {
      const share = replies.filter((reply) => reply.response === name).length / many.length;
      expect(share).toBeGreaterThan(0.22);
      expect(share).toBeLessThan(0.28);
    }
    expect(await randomPolicy(7).act(many)).toEqual(replies);
    expect(await randomPolicy(8).act(many)).not.toEqual(replies);
  });

  it.each([
    [undefined, /does not list them/],
    [[], /lists none at this step/],
  ])("reports that there is nothing to choose from: %j", async (admissible, message) => {
    await expect(randomPolicy().act([situation(1, { admissible })])).rejects.toThrow(message);
  });
});

describe("an ε-greedy policy", () => {
  const fixed: Policy = {
    name: "fixed",
    batch: 3,
    act: async (situations) => situations.map((one) => ({ response: `own ${one.seed}` })),
  };

  it("keeps the order and takes random actions as often as asked", async () => {
    const replies = await epsilonPolicy(fixed, 0.25).act(many);
    const own = replies.filter((reply, seed) => reply.response === `own ${seed}`);
    const random = replies.filter((reply) => reply.response.startsWith("["));
    expect(own.length + random.length).toBe(many.length);
    expect(replies.filter((reply) => reply.strayed)).toEqual(random);
    expect(random.length / many.length).toBeGreaterThan(0.22);
    expect(random.length / many.length).toBeLessThan(0.28);
  });

  it("acts at random never at 0 and always at 1, and rejects what is no probability", async () => {
    const never = await epsilonPolicy(fixed, 0).act(many);
    const always = await epsilonPolicy(fixed, 1).act(many);
    expect(never.every((reply) => reply.response.startsWith("own"))).toBe(true);
    expect(always.every((reply) => reply.response.startsWith("["))).toBe(true);
    expect(() => epsilonPolicy(fixed, 1.5)).toThrow(/between 0 and 1, not 1.5/);
  });

  it("mistakes one word of its action for another that it has read, where none are listed", async () => {
    const own = expertPolicy(() => "copy a.txt b2");
    const unlisted = { admissible: undefined, goal: "copy a.txt to b2", observation: "a c.md" };
    const replies = await epsilonPolicy(own, 1).act(many.map((one) => ({ ...one, ...unlisted })));
    const said = new Set(replies.map(({ response }) => response.slice(1, -1)));
    for (const one of ["to a.txt b2", "copy md.txt b2", "copy a.c b2", "copy a.txt c"])
      expect(said).toContain(one);
    for (const one of said)
      expect(one).toMatch(/^(\w+ a\.txt b2|copy \w+\.txt b2|copy a\.\w+ b2|copy a\.txt \w+)$/);
    expect(said).not.toContain("copy a.txt b2");
    expect(replies.every(({ strayed }) => strayed)).toBe(true);
  });
});
