import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Episode } from "@pawl/core/rollout/episode.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  divideByTask,
  parseBudgets,
  readDataSets,
  withinBudgets,
  writeDataSet,
} from "./dataset.js";
import { someTrajectories } from "./testing.js";
import { createProblems, succeeded, type Trajectory, trajectoryOf } from "./trajectory.js";

const one: Trajectory = {
  env: "household",
  task: "train/0",
  split: "train",
  type: "pick",
  policy: "expert",
  goal: "put a mug on a shelf",
  context: "The shelf 1 holds nothing.",
  firstObservation: "You see shelf 1.",
  turns: [{ action: "look", observation: "You see shelf 1.", done: false, success: false }],
};
const folder = () => mkdtempSync(join(tmpdir(), "pawl-wm-"));

describe("a data set", () => {
  it("is read back as it was written, with statistics", () => {
    const place = folder();
    const data = {
      train: [one, { ...one, task: "train/1" }],
      test: [{ ...one, task: "train/2" }],
    };
    writeDataSet(place, data);
    const problems = createProblems(expect.unreachable);
    expect(readDataSets([place], problems)).toEqual(data);
    const statistics = JSON.parse(readFileSync(join(place, "statistics.json"), "utf8"));
    expect(statistics.train.household).toMatchObject({ trajectories: 2, tasks: 2, turns: 2 });
  });

  it("names and counts what it cannot read", () => {
    const place = join(folder(), "damaged.jsonl");
    const { goal: _, ...goalless } = one;
    const turnless = { ...one, turns: [] };
    const half = { ...one, turns: [{ action: "look" }] };
    const lines = [one, goalless, turnless, half].map((line) => JSON.stringify(line));
    writeFileSync(place, `${lines.join("\n")}\n{"torn`);
    const told: string[] = [];
    const problems = createProblems((message) => told.push(message));
    expect(readDataSets([place], problems).train).toEqual([one]);
    expect([...problems.counts.values()]).toEqual([1, 1, 1, 1]);
    expect(told[0]).toMatch(/damaged.jsonl:2: goal: .*; left out/);
    expect(told[2]).toContain("turns.N.observation");
    expect(told[3]).toContain("not a JSON object");
  });

  it("rejects what is not a data set", () => {
    const problems = createProblems();
    expect(() => readDataSets(["nowhere"], problems)).toThrow(/nowhere does not exist/);
    expect(() => readDataSets(["recipes"], problems)).toThrow(
      /expected train.jsonl and test.jsonl/,
    );
    const empty = join(folder(), "empty.jsonl");
    writeFileSync(empty, "");
    expect(() => readDataSets([empty], problems)).toThrow(/no trajectory could be read/);
  });
});

it("divides by task: all trajectories of a task are on one side", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(30), { maxLength: 60 }), fc.nat(9), (tasks, tenths) => {
      const all = tasks.map((n) => ({ ...one, task: `train/${n}` }));
      const { train, test } = divideByTask(all, tenths / 10, 3);
      const tested = new Set(test.map(({ task }) => task));
      expect(train.length + test.length).toBe(all.length);
      expect(train.some(({ task }) => tested.has(task))).toBe(false);
    }),
  );
});

it("does not learn from a task that another data set tests", () => {
  const [first, second] = [folder(), folder()];
  const task = (n: number) => ({ ...one, task: `train/${n}` });
  writeDataSet(first, { train: [task(0), task(1), task(1)], test: [task(2)] });
  writeDataSet(second, { train: [task(2), { ...task(2), env: "webshop" }], test: [task(1)] });
  const told: string[] = [];
  const problems = createProblems((message) => told.push(message));
  expect(readDataSets([first, second], problems)).toEqual({
    train: [task(0), { ...task(2), env: "webshop" }],
    test: [task(2), task(1)],
  });
  expect([...problems.counts.values()]).toEqual([3]);
  expect(told[0]).toMatch(/^task train\/1 of household: .*tested in another; left out$/);
});

it("keeps to budgets, and a smaller budget chooses a subset of a larger one's", () => {
  const all = Array.from({ length: 40 }, (_, n) => ({
    ...one,
    task: `t/${n}`,
    env: n % 4 === 0 ? "webshop" : "household",
  }));
  const choose = (texts: string[]) => withinBudgets(all, parseBudgets(texts), 0);
  const large = choose(["household=20", "webshop=3"]);
  const small = choose(["household=5", "webshop=3"]);
  expect(large.filter(({ env }) => env === "household")).toHaveLength(20);
  expect(small).toHaveLength(8);
  expect(small.every((trajectory) => large.includes(trajectory))).toBe(true);
  expect(choose([])).toHaveLength(40);
  expect(() => choose(["household:5"])).toThrow(/for example household=2000, got "household:5"/);
});

describe("trajectories of episodes", () => {
  it("contain actions, observations, the end, and the initial state", async () => {
    const trajectories = await someTrajectories();
    expect(trajectories).toHaveLength(12);
    expect(new Set(trajectories.map(({ policy }) => policy))).toEqual(
      new Set(["expert", "epsilon=0.5"]),
    );
    const whole = trajectories.find(succeeded)!;
    expect(whole.turns.map(({ success }) => success).indexOf(true)).toBe(whole.turns.length - 1);
    expect(whole.turns.at(-1)!.done).toBe(true);
    expect(whole.context).toMatch(/^The .+ is closed\. In .+: /);
    const failed = trajectories.filter((trajectory) => !succeeded(trajectory));
    expect(failed.every(({ turns }) => turns.every(({ done }) => !done))).toBe(true);
  });

  it("leave out broken, empty and damaged episodes, each by name", () => {
    const problems = createProblems();
    const base = { task: { id: "t/0", split: "t", type: "pick" }, policy: "p", goal: "g" };
    const step = { action: "look", observation: "a room" };
    const episode = { ...base, firstObservation: "o", success: false, stop: "step-limit" };
    const read = (changes: object) =>
      trajectoryOf({ ...episode, ...changes } as unknown as Episode, "household", "e", problems);
    expect(read({ steps: [step] })?.turns).toHaveLength(1);
    expect(read({ steps: [step], stop: "broken" })).toBeUndefined();
    expect(read({ steps: [] })).toBeUndefined();
    expect(read({ steps: [{ action: "look" }] })).toBeUndefined();
    expect([...problems.counts.keys()]).toEqual([
      "the episode broke",
      "the episode has no steps",
      expect.stringContaining("steps.N.observation"),
    ]);
  });
});
