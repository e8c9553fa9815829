import { expect, it } from "vitest";
import { housePrompt } from "../envs/household/prompt.js";
import { openEnvironment } from "../envs/open.js";
import { expertPolicy } from "../rollout/policies/expert.js";
import { successInterval } from "../success-interval.js";
import { promptStyle } from "../text/prompt.js";
import { evaluate } from "./evaluate.js";

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
  expect(ids).toEqual(
    environment
      .tasks("valid_seen")
      .slice(0, 12)
      .map((task) => task.id),
  );
  expect(tally.all).toMatchObject({ episodes: 12, successes: 12 });
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
