import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../engine/engine.js";
import { recording } from "../engine/recording-testing.js";
import { logprob, mul, type Objective } from "../objectives/expression.js";
import { policyWeight, weighted, worldWeight } from "../objectives/inputs.js";
import { objectiveOptions, updateObjective } from "../objectives/objective.js";
import { pawOptions } from "../objectives/paw-options.js";
import { worldObjective } from "../objectives/world-losses.js";
import { prepareUpdate, type Update } from "../update/update.js";
import { groupsOf } from "../update/update-testing.js";
import { measureGradients, relateGradients } from "./gradients.js";

let engine: Engine;
beforeAll(async () => {
  const model = { preset: "tiny", vocabularySize: 400, maxContext: 64 } as const;
  engine = await createEmbeddedEngine({ model, threads: 1 });
});
afterAll(() => engine.dispose());

const paw = pawOptions().parse({ loss: "ce", alpha: 1, lambda: 1 });
/** Eight episodes of two steps; their advantages partly cancel, as in a group. */
const update: Update = prepareUpdate(
  groupsOf(
    [0, 1].map((g) =>
      [0, 1, 2, 3].map((e) => ({
        steps: [0, 1].map((t) => ({ action: [-5, -6 + t], observation: 2 + g, prompt: 1 + e })),
      })),
    ),
  ),
  { advantages: [0, 1].map((g) => [0, 1, 2, 3].map((e) => [e - 1.5 + g, 1.5 - e])) },
  { paw, aggregation: "token-mean", maxReturn: 10 },
);
const objective = objectiveOptions().parse({ kl: 0, entropy: 0.01 });
const terms = { critic: false, sampler: false };
const policy = updateObjective(objective, { ...paw, loss: "off" }, terms);
const world = worldObjective({ ...paw, loss: "ce" });

/** The norm of the gradient of the plain sum of losses over all of the update's sequences. */
async function lengthOf(whole: Objective): Promise<number> {
  await engine.forwardBackward(update.sequences, whole);
  return (await engine.discardGradients()).gradNorm;
}

describe("the relation of two gradients", () => {
  it("has cosine 1 if they point the same way, −1 if they oppose", async () => {
    // Every token belongs to both, so both are multiples of the same gradient.
    const both: Update = {
      ...update,
      sequences: update.sequences.map((sequence) => {
        const ones = Float32Array.from(sequence.ids, () => 0.1);
        return { ...sequence, targets: ones, inputs: { policyWeight: ones, worldWeight: ones } };
      }),
    };
    const on = (weight: typeof policyWeight, c: number): Objective => ({
      loss: weighted(weight, mul(c, logprob)),
      metrics: {},
    });
    const relate = (a: number, b: number) =>
      relateGradients(engine, both, { policy: on(policyWeight, a), world: on(worldWeight, b) });
    const same = await relate(1, 3);
    expect(same["gradient.cosine"]).toBeCloseTo(1, 4);
    expect(same["gradient.world"] / same["gradient.policy"]).toBeCloseTo(3, 4);
    const opposed = await relate(1, -0.001);
    expect(opposed["gradient.cosine"]).toBeCloseTo(-1, 4);
    expect(opposed["gradient.world"] / opposed["gradient.policy"]).toBeCloseTo(0.001, 6);
  });

  it("is that of the whole update's two terms, with the update's weights", async () => {
    const found = await relateGradients(engine, update, { policy, world });
    const [a, b] = [await lengthOf(policy), await lengthOf(world)];
    expect(found["gradient.policy"] / a).toBeCloseTo(1, 4);
    expect(found["gradient.world"] / b).toBeCloseTo(1, 4);
    // The plain identity, precise enough if neither is much longer.
    const sum = await lengthOf(updateObjective(objective, paw, terms));
    const cosine = (sum ** 2 - a ** 2 - b ** 2) / (2 * a * b);
    expect(found["gradient.cosine"]).toBeCloseTo(cosine, 3);
    expect(Math.abs(cosine)).toBeGreaterThan(1e-3);
  });

  it("asks only for tokens that contribute, and for nothing if there are none", async () => {
    const { engine: watched, asked } = recording(engine);
    await relateGradients(watched, update, { policy, world });
    const [actions, observations, all] = asked.passes.map(({ sequences }) => sequences);
    for (const [i, { ids, inputs }] of actions!.entries()) {
      expect(inputs.policyWeight![ids.length - 1]).toBeGreaterThan(0);
      expect(ids.length).toBeLessThan(all![i]!.ids.length);
    }
    for (const { targets, inputs } of observations!)
      expect(Array.from(targets!, Boolean)).toEqual(
        Array.from(inputs.worldWeight!, (weight) => weight > 0),
      );
    const without = prepareUpdate(
      groupsOf([[{ steps: [{ action: [-5], observation: 2 }] }]]),
      { advantages: [[[1]]] },
      { paw: { ...paw, lambda: 0 }, aggregation: "token-mean", maxReturn: 10 },
    );
    const found = await relateGradients(engine, without, { policy, world });
    expect(found["gradient.policy"]).toBeGreaterThan(0);
    expect(found).toMatchObject({ "gradient.world": 0, "gradient.cosine": Number.NaN });
  });
});

describe("gradients are measured", () => {
  const due = async (every: number, index: number, loss: "ce" | "off" = "ce") => {
    const options = { gradients: { every }, objective, paw: { ...paw, loss } };
    return (await measureGradients(engine, update, options, terms, index)) !== undefined;
  };

  it("every k updates, starting with the first, and never without a world model", async () => {
    expect([await due(3, 0), await due(3, 1), await due(3, 2), await due(3, 3)]).toEqual([
      true,
      false,
      false,
      true,
    ]);
    expect([await due(0, 0), await due(1, 7), await due(1, 7, "off")]).toEqual([
      false,
      true,
      false,
    ]);
  });
});
