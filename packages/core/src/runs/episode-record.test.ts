import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openEnvironment } from "../envs/open.js";
import type { Episode, Step } from "../rollout/episode.js";
import { expertPolicy } from "../rollout/policies/config.js";
import { rollout } from "../rollout/rollout.js";
import { promptStyle } from "../text/prompt.js";
import { type EpisodeRecord, packEpisode, unpackEpisode } from "./episode-record.js";

/** What is read back after writing. */
const readBack = (record: EpisodeRecord): Episode =>
  unpackEpisode(JSON.parse(JSON.stringify(record)) as EpisodeRecord);

const base: Omit<Episode, "steps"> = {
  task: { id: "train/0", split: "train", type: "pick" },
  group: 0,
  attempt: 0,
  seed: 1,
  policy: "engine",
  goal: "Put a knife on a desk.",
  firstObservation: "You see a desk.",
  return: 0,
  success: false,
  stop: "step-limit",
};

describe("a packed episode", () => {
  it("is the same after reading, whatever its steps have in common", () => {
    // Few different entries, so that lists often share a prefix.
    const piece = fc.record({
      origin: fc.constantFrom("template" as const, "history" as const, "observation" as const),
      text: fc.constantFrom("a", "b"),
    });
    const span = fc.record({
      kind: fc.constantFrom("prompt" as const, "action" as const),
      start: fc.integer({ min: 0, max: 1 }),
      end: fc.integer({ min: 1, max: 2 }),
      origin: fc.constantFrom("task", "policy"),
    });
    const sequence = fc.record(
      {
        ids: fc.array(fc.integer({ min: 0, max: 1 })),
        spans: fc.array(span),
        logprobs: fc.array(fc.constantFrom(-0.5, -1)),
      },
      { requiredKeys: ["ids", "spans"] },
    );
    const step = fc.record(
      {
        prompt: fc.array(piece),
        response: fc.constant("go"),
        action: fc.constant("go"),
        wellFormed: fc.constant(true),
        valid: fc.boolean(),
        observation: fc.constant("You are there."),
        reward: fc.constant(0),
        sequence,
      },
      {
        requiredKeys: [
          "prompt",
          "response",
          "action",
          "wellFormed",
          "valid",
          "observation",
          "reward",
        ],
      },
    ) as fc.Arbitrary<Step>;
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        expect(readBack(packEpisode({ ...base, steps }))).toEqual({ ...base, steps });
      }),
    );
  });

  it("is read unchanged if every list is written out", () => {
    const steps: Step[] = [1, 2].map((reward) => ({
      prompt: [{ origin: "task", text: "Do it." }],
      response: "go",
      action: "go",
      wellFormed: true,
      valid: true,
      observation: "You are there.",
      reward,
      sequence: { ids: [1, 2], spans: [{ kind: "prompt", start: 0, end: 2, origin: "task" }] },
    }));
    expect(readBack({ ...base, steps })).toEqual({ ...base, steps });
  });

  it("does not repeat the history at every step", async () => {
    const environment = openEnvironment({ name: "household", rooms: 2 });
    const style = promptStyle(environment.prompt, { style: "compact", history: "all" });
    const groups = await rollout({
      environment,
      style,
      policy: expertPolicy(environment.seeker!),
      tasks: environment.tasks("train").slice(0, 20),
      groupSize: 1,
      seed: 0,
    });
    for (const episode of groups.flatMap((group) => group.episodes)) {
      const packed = packEpisode(episode);
      expect(readBack(packed)).toEqual(episode);
      const pieces = packed.steps.map(({ prompt }) => ("rest" in prompt ? prompt.rest : prompt));
      // For every step: the action, the observation and the template around them.
      for (const rest of pieces.slice(1)) expect(rest.length).toBeLessThanOrEqual(6);
    }
  });
});
