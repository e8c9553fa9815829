import "@pawl/pawl/cli/all-worlds.js";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { envChecks } from "@pawl/core/envs/conformance.js";
import type { Environment } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { expertPolicy } from "@pawl/core/rollout/policies/config.js";
import type { Policy } from "@pawl/core/rollout/policy.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { describe, expect, it } from "vitest";
import { registerReward } from "./rewards.js";
import { openTasks, type TaskWorld } from "./task-env.js";
import { readTasks } from "./task-record.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-tasks-"));
let written = 0;
function file(...lines: readonly unknown[]): string {
  const path = join(folder, `${++written}.jsonl`);
  const texts = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)));
  writeFileSync(path, `${texts.join("\n")}\n`);
  return path;
}
const sums = () =>
  file({ goal: "1 + 1?", answer: 2, type: "small" }, { id: "big", goal: "20 + 22?", answer: "42" });

async function played(environment: Environment, answers: readonly string[] | Policy) {
  const policy: Policy = Array.isArray(answers)
    ? {
        name: "scripted",
        batch: 1,
        act: async (all) => all.map(({ index, format }) => ({ response: format(answers[index]!) })),
      }
    : (answers as Policy);
  const [split] = environment.splits;
  const groups = await rollout({
    environment,
    policy,
    style: promptStyle(undefined),
    tasks: environment.tasks(split!),
    groupSize: 1,
    seed: 0,
  });
  return groups.flatMap(({ episodes }) => episodes);
}

describe("the environment tasks", () => {
  describe("keeps the contract", () => {
    const environment = openEnvironment({ name: "tasks", train: sums(), valid: sums() });
    for (const check of envChecks(environment)) it(check.name, check.run);
  });

  it("judges one answer per task, apart from case and white space, and can teach them", async () => {
    const environment = openEnvironment({ name: "tasks", train: sums() });
    const episodes = await played(environment, [" 42 "]);
    expect(
      episodes.map(({ task, goal, success, return: total, stop }) => [
        task,
        goal,
        success,
        total,
        stop,
      ]),
    ).toEqual([
      [expect.objectContaining({ id: "train/0", type: "small" }), "1 + 1?", false, 0, "done"],
      [expect.objectContaining({ id: "train/big", type: "task" }), "20 + 22?", true, 1, "done"],
    ]);
    const taught = await played(environment, expertPolicy(environment.expert!));
    expect(taught.map(({ success }) => success)).toEqual([true, true]);
  });

  it("takes a reward from a plugin, also one that takes its time", async () => {
    registerReward("half", async ({ answer }) => {
      await new Promise((resolve) => setImmediate(resolve));
      return { reward: answer.length / 2, success: false, score: 0.5, observation: "Hm." };
    });
    const environment = openEnvironment({ name: "tasks", train: sums(), reward: "half" });
    expect(environment.expert).toBeUndefined();
    const [episode] = await played(environment, ["yes!"]);
    expect(episode).toMatchObject({ return: 2, success: false, score: 0.5 });
    expect(episode!.steps[0]!.observation).toBe("Hm.");
    expect(() => registerReward("half", () => 1)).toThrow(/a reward "half" already/);
    expect(() => registerReward("Half", () => 1)).toThrow(/lowercase/);
    expect(() => registerReward("none", 3 as never)).toThrow(/expected a function/);
  });

  it("breaks the episodes of a task whose reward fails or is none, by reason", async () => {
    const world = (reward: () => unknown): Environment =>
      openTasks({
        name: "judged",
        splits: { train: () => [{ goal: "a" }, { goal: "b" }] },
        reward: ({ task }) => (task.goal === "a" ? 1 : (reward() as number)),
      });
    for (const [reward, reason] of [
      [() => Number.NaN, "the reward is NaN, expected a finite number"],
      [() => "good", 'the reward function gave "good"; expected a number, or { reward, success }'],
      [() => Promise.reject(new Error("the judge is asleep")), "the judge is asleep"],
    ] as const) {
      const episodes = await played(world(reward), ["x"]);
      expect(episodes.map(({ stop, error }) => [stop, error])).toEqual([
        ["done", undefined],
        ["broken", reason],
      ]);
    }
    const unknown = openEnvironment({ name: "tasks", train: file({ goal: "?" }) });
    await expect(played(unknown, ["x"])).rejects.toThrow(/needs an "answer" in the task's line/);
  });
});

describe("several turns", () => {
  const world: TaskWorld = {
    name: "spell",
    splits: { train: () => [{ goal: "Spell hi.", word: "hi" }] },
    turns: 3,
    reply: async ({ task, actions }) =>
      actions.join("") === task.word ? undefined : `So far: ${actions.join("")}`,
    reward: ({ task, actions }) => (actions.join("") === task.word ? 1 : 0),
  };
  it("reply until the reply ends the episode, or its last turn does", async () => {
    const [won] = await played(openTasks(world), ["h", "i", "never asked"]);
    expect(won!.steps.map(({ observation, reward }) => [observation, reward])).toEqual([
      ["So far: h", 0],
      ["Done.", 1],
    ]);
    const [lost] = await played(openTasks(world), ["a", "b", "c"]);
    expect(lost).toMatchObject({ stop: "done", success: false, return: 0 });
    expect(lost!.steps).toHaveLength(3);
  });
});

describe("tasks from files", () => {
  it("may be given as a URL, and end with blank lines", () => {
    const path = file({ goal: "a" }, "", "");
    expect(readTasks("x", pathToFileURL(path))).toEqual([
      { id: "x/0", split: "x", type: "task", goal: "a", observation: "Nothing has happened yet." },
    ]);
  });

  it.each<[readonly unknown[], RegExp]>([
    [["{"], /\.jsonl, line 1: .*JSON/],
    [[{ goal: "a" }, 3], /\.jsonl, line 2: expected an object with a goal, got 3/],
    [[{ answer: 1 }], /line 1: goal: expected text, got undefined/],
    [[{ goal: "a", observation: { image: 1 } }], /observation: expected text, got \{"image":1\}/],
    [[{ goal: "a", type: 1 }], /type: expected text, got 1/],
    [[{ goal: "a", id: [] }], /id: expected text or a number, got \[\]/],
    [
      [
        { goal: "a", id: 7 },
        { goal: "b", id: "7" },
      ],
      /line 2: the id "7" occurs twice/,
    ],
  ])("refuses %j", (lines, message) => {
    expect(() => readTasks("train", file(...lines))).toThrow(message);
  });

  it("names a file that is not there, and a function that gives no list", () => {
    expect(() => readTasks("train", join(folder, "none.jsonl"))).toThrow(
      /could not read the tasks.*none\.jsonl/,
    );
    expect(() => readTasks("train", () => 3 as never)).toThrow(
      /the tasks of train: expected a list/,
    );
  });
});
