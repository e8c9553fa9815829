import { readTrainConfig } from "@pawl/training/recorded-config.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { describe, expect, it } from "vitest";
import { housePrompt } from "../envs/household/prompt.js";
import { openEnvironment } from "../envs/open.js";
import { expertPolicy } from "../rollout/policies/config.js";
import { successInterval } from "../success-interval.js";
import { promptStyle } from "../text/prompt.js";
import { evaluate, evaluationTasks } from "./evaluate.js";

const idsOf = (tasks: readonly { readonly id: string }[]) => tasks.map(({ id }) => id);

const environment = openEnvironment({ name: "household" });
const base = {
  environment,
  policy: expertPolicy(environment.expert!),
  style: promptStyle(housePrompt),
  seed: 0,
};

it("plays each task once", async () => {
  const ids: string[] = [];
  const tally = await evaluate({
    ...base,
    split: "valid_seen",
    tasks: 12,
    onEpisode: ({ task }) => void ids.push(task.id),
  });
  expect(ids).toEqual(idsOf(evaluationTasks(environment, "valid_seen", { tasks: 12 })));
  expect(tally.all).toMatchObject({ episodes: 12, successes: 12 });
});

describe("the tasks of an evaluation", () => {
  const all = idsOf(environment.tasks("valid_seen"));
  const some = (tasks: number, shuffle?: boolean) =>
    idsOf(
      evaluationTasks(environment, "valid_seen", { tasks, ...(shuffle === false && { shuffle }) }),
    );

  it("are a sample, of which a smaller one is the beginning", () => {
    const sample = some(64);
    expect(new Set(sample).size).toBe(64);
    expect(all).toEqual(expect.arrayContaining(sample));
    expect(some(16)).toEqual(sample.slice(0, 16));
    // About as many from either half of the split; the first ones would all be from one.
    const early = sample.filter((id) => all.indexOf(id) < all.length / 2).length;
    expect(early).toBeGreaterThan(16);
    expect(early).toBeLessThan(48);
  });

  it("are the same in another process and version", () => {
    expect(some(4)).toMatchInlineSnapshot(`
      [
        "valid_seen/297",
        "valid_seen/856",
        "valid_seen/370",
        "valid_seen/894",
      ]
    `);
  });

  it("differ between splits, and are all of them in order where as many are asked for", () => {
    const places = (split: string) =>
      evaluationTasks(environment, split, { tasks: 16 }).map((task) =>
        environment.tasks(split).indexOf(task),
      );
    expect(places("valid_seen")).not.toEqual(places("valid_unseen"));
    expect(some(all.length)).toEqual(all);
    expect(some(all.length + 1)).toEqual(all);
    expect(idsOf(evaluationTasks(environment, "valid_seen"))).toEqual(all);
  });

  it("are the first ones if told so, as they were before", () => {
    expect(some(16, false)).toEqual(all.slice(0, 16));
    const { evaluation, ...others } = tinyConfig();
    const { shuffle, ...before } = evaluation;
    expect(shuffle).toBe(true);
    const read = readTrainConfig({ ...others, evaluation: before });
    expect("config" in read && read.config.evaluation).toEqual({ ...evaluation, shuffle: false });
  });
});

it("refuses an empty list", async () => {
  const nothing = { ...environment, tasks: () => [] };
  await expect(evaluate({ ...base, environment: nothing, split: "valid_seen" })).rejects.toThrow(
    /nothing to evaluate: split "valid_seen" of household has no task/,
  );
});

it("gives Wilson's interval", () => {
  const counts = {
    broken: 0,
    steps: 0,
    malformed: 0,
    refused: 0,
    returns: 0,
    scores: 0,
    scored: 0,
  };
  const [low, high] = successInterval({ ...counts, successes: 8, episodes: 10 });
  expect(low).toBeCloseTo(0.4902, 4);
  expect(high).toBeCloseTo(0.9433, 4);
  expect(successInterval({ ...counts, successes: 0, episodes: 10 })[0]).toBe(0);
  expect(successInterval({ ...counts, successes: 0, episodes: 0 })).toEqual([0, 1]);
});
