import { inProcess, testModel } from "@pawl/engine-remote/remote/model-testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scores } from "../engine/conformance-tools-testing.js";
import type { Engine } from "../engine/engine.js";
import { objectiveOptions } from "../objectives/objective.js";
import { clip, policyObjective } from "../objectives/policy.js";
import type { Update } from "../update/update.js";
import { learn } from "./learn.js";
import { mismatchLimit } from "./mismatch.js";
import { optimizerOptions } from "./schedule.js";

describe("log-probabilities of sampling against those of learning", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await inProcess(testModel);
  });
  afterAll(() => engine.dispose());

  const ids = [1, 2, 3, 4, 5];
  /** One sequence whose recorded log-probabilities are off from the engine's by this much. */
  const learnt = async (apart: number, limit?: number) => {
    const recorded = (await scores(engine, ids)).map((x) => x + apart);
    const ones = ids.map(() => 1);
    const inputs = { oldLogprob: recorded, advantage: ones, policyWeight: [0, 1, 1, 1, 1] };
    const update = { sequences: [{ ids, inputs, steps: 1 }] } as unknown as Update;
    return learn(engine, update, {
      objective: policyObjective(clip.token(objectiveOptions().parse({}))),
      aggregation: "token-mean",
      minibatch: 1,
      optimizer: optimizerOptions.parse({ warmup: 0 }),
      stepsBefore: 0,
      stepsInAll: 1,
      seed: 0,
      ...(limit !== undefined && { mismatchLimit: limit }),
    });
  };

  it("stops before learning from other log-probabilities, and no weight has moved", async () => {
    const before = await scores(engine, ids);
    await expect(learnt(0.01, 1e-3)).rejects.toThrow(
      /mismatch.mean is 0.0100 nats, above 0.001: for embedded,.*set mismatchLimit/,
    );
    expect(await scores(engine, ids)).toEqual(before);
  });

  it("allows rounding, and anything up to the limit that is set", async () => {
    for (const [apart, limit] of [
      [1e-5, 1e-3],
      [0.01, 0.02],
      [0.01, undefined],
    ] as const)
      expect((await learnt(apart, limit)).metrics["mismatch.mean"]).toBeCloseTo(apart, 4);
  });

  it("has a limit by the engine's precision, unless a setting overrides it", () => {
    expect(mismatchLimit({}, undefined)).toBe(1e-3);
    expect(mismatchLimit({ sixteenBits: true }, undefined)).toBe(0.1);
    expect(mismatchLimit({ otherSampler: true }, undefined)).toBe(0.1);
    expect(mismatchLimit({ sixteenBits: true }, 0.5)).toBe(0.5);
    expect(mismatchLimit({}, 1e-5)).toBe(1e-5);
  });
});
