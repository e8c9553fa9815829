import { envChecks } from "@pawl/core/envs/conformance.js";
import type { Env } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { expect, it } from "vitest";
import { familyNames, MOST_POINTS, madeUpGame, madeUpTasks } from "./made-up.js";

const open = (options: object = {}) =>
  openEnvironment({ name: "textworld", data: "made-up", ...options });

it("keeps the environment contract", async () => {
  const environment = open();
  expect(environment.splits).toEqual(["train", "valid", "test"]);
  for (const check of envChecks(environment, { steps: 12 }))
    await expect(check.run(), check.name).resolves.toBeUndefined();
});

it("can be won by the expert in every game for tests, for all of its points", () => {
  const environment = open();
  for (const task of environment.tasks("test")) {
    const env = environment.create() as Env;
    env.reset(task);
    const walked: string[] = [];
    let points = 0;
    for (let over = false; !over; ) {
      const command = environment.expert!(env);
      expect(env.admissibleActions!(), task.id).toContain(command);
      walked.push(command);
      const { reward, done, info } = env.step(command);
      points += reward;
      over = done || walked.length === environment.stepLimit;
      if (over) expect([task.id, info.success, info.score]).toEqual([task.id, true, 1]);
    }
    expect(points).toBe(madeUpGame(task).maxScore);
    expect(points).toBeLessThanOrEqual(MOST_POINTS);
  }
});

it("can still be won after wandering about, unless something irreversible was done", () => {
  const environment = open();
  for (const [index, task] of environment.tasks("valid").slice(0, 40).entries()) {
    const env = environment.create() as Env;
    env.reset(task);
    for (let step = 0; step < 12; step++) {
      const harmless = env.admissibleActions!().filter((action) =>
        /^(?:go|open|close|unlock|drop|look|put)/.test(action),
      );
      if (env.step(harmless[(index * 7 + step * 5) % harmless.length]!).done) break;
    }
    let result: ReturnType<Env["step"]> | undefined;
    for (let step = 0; step < 60 && !result?.done && env.admissibleActions!().length > 0; step++)
      result = env.step(environment.expert!(env));
    expect(result?.info.success ?? true, task.id).toBe(true);
  }
});

it("draws no game for tests that is also drawn for training", () => {
  const world = (split: string): readonly string[] =>
    madeUpTasks(split).map((task) => {
      const { world: facts, objective } = madeUpGame(task);
      return `${objective} ${[...facts.values()].flat().map(({ key }) => key)}`;
    });
  const seen = new Set([...world("train"), ...world("valid")]);
  const again = world("test").filter((one) => seen.has(one));
  expect(again).toEqual([]);
});

it("has families as types, and loses where something fatal is done", () => {
  const environment = open({ types: ["cooking"], style: "plain", opening: "whole" });
  expect(
    new Set(
      open()
        .tasks("test")
        .map(({ type }) => type),
    ),
  ).toEqual(new Set(familyNames));
  expect(() => open({ types: ["tw-simple"] }).tasks("test")).toThrow(
    /made-up games has no games of tw-simple; it has coin, cooking, delivery, treasure/,
  );
  const env = environment.create() as Env;
  const first = env.reset(environment.tasks("test")[0]!);
  expect(first).toMatch(/^\nA made-up game in the manner of TextWorld\.\n\nRead the cookbook/);
  expect(first).toMatch(/\n\n> {128}-= \w+ =-0\/0$/);
  expect(env.step("frobnicate")).toMatchObject({ reward: 0, done: false, info: { valid: false } });
  const eat = (): string | undefined =>
    env.admissibleActions!().find((action) => action.startsWith("eat"));
  while (eat() === undefined) env.step(environment.expert!(env));
  expect(env.irreversible!(eat()!)).toBe(true);
  const lost = env.step(eat()!);
  expect(lost).toMatchObject({ done: true, info: { valid: true, success: false } });
  expect(lost.observation).toMatch(/\*\*\* You lost! \*\*\*/);
});

it("says that recordings are of story files", () => {
  expect(() => open().replayRecords!([{ game: "tw-1.z8", steps: [{ obs: "" }] }], [])).toThrow(
    /recordings are of story files/,
  );
});
