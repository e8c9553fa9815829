/** The settings of objectives: their defaults, which are the paper's, and their limits. */
import { describe, expect, it } from "vitest";
import { evaluateObjective } from "./expression-evaluate.js";
import { inputsOf, quantitiesOf } from "./expression-interpret.js";
import { meanMetrics } from "./inputs.js";
import { objectiveOptions, updateObjective } from "./objective.js";
import { pawOptions } from "./paw-options.js";
import { supervisedObjective } from "./supervised.js";

describe("settings of objectives", () => {
  it("have the paper's defaults, and a critic that does not drown the policy", () => {
    expect(objectiveOptions().parse({})).toEqual({
      loss: "clip",
      clipLow: 0.2,
      clipHigh: 0.2,
      dualClip: 3,
      responseClipLow: 3e-4,
      responseClipHigh: 4e-4,
      importanceCap: 2,
      kl: 0.01,
      entropy: 0.001,
      valueClip: 0.5,
      valueCoefficient: 0.01,
      aggregation: "token-mean",
    });
    expect(pawOptions().parse({})).toEqual({
      loss: "cmae",
      rho: 0.2,
      mask: "below",
      alpha: 0.75,
      targets: "own",
      every: 1,
      entropy: "sampled",
      lambda: "adaptive",
      aggregation: "group-mean",
    });
  });

  it("weight a sampler's tokens only if there is a separate sampler", () => {
    const inputs = (sampler?: boolean) => {
      const more = { critic: false, ...(sampler !== undefined && { sampler }) };
      const options = objectiveOptions().parse({});
      return inputsOf(updateObjective(options, pawOptions().parse({}), more).loss);
    };
    expect(inputs(true)).toContain("samplerLogprob");
    expect(inputs(false)).not.toContain("samplerLogprob");
    expect(inputs()).not.toContain("samplerLogprob");
  });

  it("leave out a term and its inputs if its weight is 0, or it is off", () => {
    const readBy = (given: object, paw: object = {}, critic = false) => {
      const options = objectiveOptions().parse({ kl: 0, entropy: 0, ...given });
      const { loss } = updateObjective(options, pawOptions().parse({ loss: "off", ...paw }), {
        critic,
      });
      return [...inputsOf(loss), ...quantitiesOf(loss)];
    };
    expect(readBy({})).not.toContain("referenceLogprob");
    expect(readBy({ kl: 0.5 })).toContain("referenceLogprob");
    expect(readBy({})).not.toContain("entropy");
    expect(readBy({ entropy: 0.5 })).toContain("entropy");
    expect(readBy({})).not.toContain("targetReturn");
    expect(readBy({}, {}, true)).toContain("targetReturn");
    expect(readBy({})).not.toContain("worldWeight");
    expect(readBy({}, { loss: "ce" })).toContain("worldWeight");
  });

  it("count the tokens of supervised learning with a weight above 0", () => {
    const values = {
      count: 3,
      quantities: { logprob: Float32Array.of(0, -1, -2) },
      inputs: { weight: Float32Array.of(0, 0.5, 0) },
    };
    const { metrics } = evaluateObjective(supervisedObjective, values);
    expect(metrics["supervised.tokens"]).toBe(1);
  });

  it("have metrics that are means, of a single token too", () => {
    expect(meanMetrics({ "policy.tokens": 1, "policy.value": 3, "policy.loss": 5 })).toEqual({
      "policy.tokens": 1,
      "policy.value": 3,
      "policy.loss": 5,
    });
    expect(meanMetrics({ "policy.tokens": 0, "policy.value": 0 })["policy.value"]).toBe(0);
  });

  const LIMITS = [
    ["clipLow", [0, 1], [-0.1, 1.1]],
    ["clipHigh", [0, 5], [-0.1]],
    ["dualClip", [1.1, 9], [1, 0]],
    ["importanceCap", [0.1, 9], [0, -1]],
    ["kl", [0, 2], [-0.1]],
    ["entropy", [0, 2], [-0.1]],
    ["valueClip", [0.1, 9], [0, -1]],
    ["valueCoefficient", [0, 2], [-0.1]],
  ] as const;
  it.each(LIMITS)("objective.%s", (setting, fine, refused) => {
    for (const value of fine)
      expect(objectiveOptions().safeParse({ [setting]: value }).success).toBe(true);
    for (const value of refused)
      expect(objectiveOptions().safeParse({ [setting]: value }).success).toBe(false);
  });

  const PAW_LIMITS = [
    ["rho", [0, 1], [-0.1, 1.1]],
    ["alpha", [0.1, 1], [0, 1.1]],
    ["lambda", [0, 3, "adaptive"], [-0.1, "off"]],
  ] as const;
  it.each(PAW_LIMITS)("paw.%s", (setting, fine, refused) => {
    for (const value of fine)
      expect(pawOptions().safeParse({ [setting]: value }).success).toBe(true);
    for (const value of refused)
      expect(pawOptions().safeParse({ [setting]: value }).success).toBe(false);
  });
});
