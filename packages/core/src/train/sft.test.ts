import { worldTexts } from "@pawl/training/world-text.js";
import { describe, expect, it } from "vitest";
import { openEnvironment } from "../envs/open.js";
import { teacherPolicy } from "../rollout/policies/config.js";
import { rollout } from "../rollout/rollout.js";
import { promptStyle } from "../text/prompt.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { imitationSequences, sftOptions, weighted } from "./sft.js";

it("imitates what the teacher chose, not its random actions", async () => {
  const environment = openEnvironment({ name: "household" });
  const style = promptStyle(environment.prompt, { style: "compact", history: "all" });
  const tokenizer = buildTokenizer(await worldTexts(environment, style));
  const groups = await rollout({
    environment,
    style,
    policy: teacherPolicy(environment, "seeker", 0.4),
    tasks: environment.tasks("train").slice(0, 6),
    groupSize: 1,
    seed: 0,
  });
  const both = { actionWeight: 0, observationWeight: 0.5, randomActions: false };
  const [first] = imitationSequences(groups[0]!.episodes[0]!, { tokenizer, style }, both);
  const seen = Array.from(first!.ids).filter((_, at) => first!.inputs.observationWeight![at]! > 0);
  expect(tokenizer.decode(seen)).toContain(groups[0]!.episodes[0]!.steps[0]!.observation);
  expect(Array.from(first!.inputs.weight!).some((mark) => mark > 0)).toBe(false);
  const { targets = [] } = first!;
  expect(Array.from(targets)).toEqual(Array.from(first!.inputs.observationWeight!));
  let strayed = 0;
  for (const { episodes } of groups) {
    const episode = episodes[0]!;
    const [sequence, ...others] = imitationSequences(
      episode,
      { tokenizer, style },
      { observationWeight: 0, randomActions: false },
    );
    expect(others).toEqual([]);
    const ids = Array.from(sequence!.ids);
    const imitated = ids.filter((_, at) => sequence!.inputs.weight![at]! > 0);
    const own = episode.steps.filter((step) => !step.strayed);
    strayed += episode.steps.length - own.length;
    expect(tokenizer.decode(imitated)).toBe(own.map((step) => `${step.action}<|see|>`).join(""));
  }
  expect(strayed).toBeGreaterThan(10);
});

describe("the loss of a batch with observations", () => {
  // Six action tokens and ten observation tokens, in two sequences; one token is neither.
  const batch = [
    { actions: [0, 1, 1, 0, 0], observations: [0, 0, 0, 1, 1] },
    { actions: [1, 1, 1, 1, ...Array(8).fill(0)], observations: [0, 0, 0, 0, ...Array(8).fill(1)] },
  ].map(({ actions, observations }) => ({
    ids: actions,
    targets: Uint8Array.from(actions),
    inputs: {
      weight: Float32Array.from(actions),
      observationWeight: Float32Array.from(observations),
    },
  }));
  const sums = (options: Parameters<typeof weighted>[1]) => {
    const weights = weighted(batch, options).flatMap(({ inputs }) => Array.from(inputs.weight!));
    const marks = batch.flatMap(({ inputs }) => Array.from(inputs.weight));
    const of = (mark: number) =>
      weights.reduce((sum, weight, i) => sum + (marks[i] === mark ? weight : 0), 0);
    return { actions: of(1), observations: of(0), weights };
  };

  it("has a mean over each kind, so that observations take nothing from actions", () => {
    for (const observationWeight of [0.3, 1, 5]) {
      const { actions, observations } = sums({ actionWeight: 1, observationWeight, mean: "each" });
      expect(actions).toBeCloseTo(1, 6);
      expect(observations).toBeCloseTo(observationWeight, 6);
    }
    const { weights } = sums({ actionWeight: 2, observationWeight: 0.5, mean: "each" });
    expect(weights.slice(0, 5)).toEqual([0, 2 / 6, 2 / 6, 0.05, 0.05].map(Math.fround));
    const only = sums({ actionWeight: 0, observationWeight: 1, mean: "each" });
    expect([only.actions, only.observations]).toEqual([0, expect.closeTo(1, 6)]);
  });

  it("has one mean over both, if asked", () => {
    const { actions, observations } = sums({
      ...{ actionWeight: 1, observationWeight: 0.3, mean: "together" },
    });
    expect(actions).toBeCloseTo(6 / (6 + 0.3 * 10), 6);
    expect(actions + observations).toBeCloseTo(1, 6);
  });

  it("weighs actions also where no observation is learnt", () => {
    const actions = batch.map(({ inputs: { weight }, ...rest }) => ({
      ...rest,
      inputs: { weight },
    }));
    const weights = weighted(actions, { actionWeight: 2, observationWeight: 0, mean: "each" });
    const sum = weights.flatMap(({ inputs }) => Array.from(inputs.weight!)).reduce((a, b) => a + b);
    expect(sum).toBeCloseTo(2, 6);
  });

  it("is left as it is without tokens of one kind", () => {
    const none = batch.map((one) => ({
      ...one,
      inputs: { ...one.inputs, weight: new Float32Array(one.ids.length) },
    }));
    const options = { actionWeight: 1, observationWeight: 1, mean: "each" } as const;
    for (const { inputs } of weighted(none, options))
      expect(Array.from(inputs.weight!).every(Number.isFinite)).toBe(true);
  });

  it("refuses to learn nothing, and random actions where no action is learnt", () => {
    expect(() => sftOptions.parse({ actionWeight: 0 })).toThrow(/nothing to learn/);
    const only = { actionWeight: 0, observationWeight: 1 };
    expect(sftOptions.parse(only)).toMatchObject({ ...only, mean: "each" });
    expect(() => sftOptions.parse({ ...only, randomActions: true })).toThrow(/no action is learnt/);
  });
});
