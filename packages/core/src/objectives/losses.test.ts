/**
 * Every objective against its closed form, and its derivative against that and finite differences.
 */

import { gradientShare } from "@pawl/studies/gradient-shares.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cispo } from "./cispo.js";
import { expressionsOf, type Objective, type Quantity, sumObjectives } from "./expression.js";
import { derivative } from "./expression-derivative.js";
import { evaluate, evaluateObjective } from "./expression-evaluate.js";
import { inputsOf, quantitiesOf } from "./expression-interpret.js";
import { gspo } from "./gspo.js";
import { offPolicy } from "./importance.js";
import { meanMetrics } from "./inputs.js";
import { clip, entropyObjective, klObjective, policyObjective, valueObjective } from "./policy.js";
import { type WorldOptions, worldObjective } from "./world-losses.js";

type Inputs = Readonly<Record<string, number>>;
type Quantities = Readonly<Partial<Record<Quantity, number>>>;

const anyLogprob = fc.double({ min: -12, max: -1e-6, noNaN: true });
const anyAdvantage = fc.double({ min: -3, max: 3, noNaN: true });
const anyWeight = fc.double({ min: 0.01, max: 2, noNaN: true });
const anyValue = fc.double({ min: -5, max: 5, noNaN: true });

const lossOf = (objective: Objective, at: Quantities, inputs: Inputs) =>
  evaluate(objective.loss, at, inputs);
const slopeOf = (objective: Objective, by: Quantity, at: Quantities, inputs: Inputs) =>
  evaluate(derivative(objective.loss, by), at, inputs);

function expectClose(actual: number, expected: number, tolerance = 1e-10) {
  expect(Math.abs(actual - expected)).toBeLessThanOrEqual(tolerance * (1 + Math.abs(expected)));
}

/** Compares the derivative with finite differences, unless a kink lies within the interval. */
function expectDifferences(objective: Objective, by: Quantity, at: Quantities, inputs: Inputs) {
  const h = 1e-5;
  const x = at[by]!;
  const moved = (offset: number) => ({ ...at, [by]: x + offset });
  const slopes = [-h, 0, h].map((offset) => slopeOf(objective, by, moved(offset), inputs));
  if (Math.abs(slopes[0]! - slopes[2]!) > 1e-2 * (1 + Math.abs(slopes[1]!))) return false;
  const difference =
    (lossOf(objective, moved(h), inputs) - lossOf(objective, moved(-h), inputs)) / (2 * h);
  expectClose(slopes[1]!, difference, 1e-5);
  return true;
}

describe("policyObjective", () => {
  const objective = policyObjective(clip.token({ clipLow: 0.2, clipHigh: 0.3, dualClip: 3 }));

  it("is −A·ratio with slope −A·ratio, until it is clipped", () => {
    fc.assert(
      fc.property(anyLogprob, anyLogprob, anyAdvantage, anyWeight, (l, old, a, w) => {
        const inputs = { oldLogprob: old, advantage: a, policyWeight: w };
        const r = Math.exp(l - old);
        const isClipped = (a > 0 && r > 1.3) || (a < 0 && (r < 0.8 || r > 3));
        expectClose(
          slopeOf(objective, "logprob", { logprob: l }, inputs),
          isClipped ? 0 : -a * r * w,
        );
        const bounded = a > 0 ? Math.min(r, 1.3) : Math.min(Math.max(r, 0.8), 3);
        expectClose(lossOf(objective, { logprob: l }, inputs), -a * bounded * w);
      }),
    );
  });

  it("agrees with finite differences", () => {
    let judged = 0;
    fc.assert(
      fc.property(
        anyLogprob,
        fc.double({ min: -1, max: 1, noNaN: true }),
        anyAdvantage,
        (l, d, a) => {
          const inputs = { oldLogprob: l + d, advantage: a, policyWeight: 0.5 };
          if (expectDifferences(objective, "logprob", { logprob: l }, inputs)) judged++;
        },
      ),
      { numRuns: 100 },
    );
    expect(judged).toBeGreaterThan(50);
  });

  it("reports ratio, clipped fraction and how far the policy moved", () => {
    // Ratios 1, 2, 0.5, 4 with advantages 1, 1, −1, −1; the fifth token is an observation.
    const { metrics, loss } = evaluateObjective(objective, {
      count: 5,
      quantities: { logprob: [-2, -2, -2, -2, -1] },
      inputs: {
        oldLogprob: [-2, -2 - Math.LN2, -2 + Math.LN2, -2 - 2 * Math.LN2, 0],
        advantage: [1, 1, -1, -1, 0],
        policyWeight: [0.25, 0.25, 0.25, 0.25, 0],
      },
    });
    expect(loss).toBeCloseTo(0.25 * (-1 - 1.3 + 0.8 + 3), 12);
    const means = meanMetrics(metrics);
    expect(means["policy.tokens"]).toBe(4);
    expect(means["policy.loss"]).toBeCloseTo(loss, 12);
    expect(means["policy.ratio"]).toBeCloseTo(7.5 / 4, 12);
    expect(means["policy.clipped"]).toBe(0.5);
    expect(means["policy.dualClipped"]).toBe(0.25);
    expect(means["policy.moved"]).toBeCloseTo((-2 * Math.LN2) / 4, 12);
  });

  it("weights a separate sampler's tokens by the truncated probability ratio, in loss and slope", () => {
    const token = clip.token({ clipLow: 0.2, clipHigh: 0.3, dualClip: 3 });
    const corrected = policyObjective(offPolicy(token, { importanceCap: 2 }));
    fc.assert(
      fc.property(anyLogprob, anyLogprob, anyLogprob, anyAdvantage, (l, old, sampler, a) => {
        const inputs = {
          oldLogprob: old,
          samplerLogprob: sampler,
          advantage: a,
          policyWeight: 0.5,
        };
        const at = { logprob: l };
        const weight = Math.min(Math.exp(old - sampler), 2);
        expectClose(lossOf(corrected, at, inputs), weight * lossOf(objective, at, inputs));
        expectClose(
          slopeOf(corrected, "logprob", at, inputs),
          weight * slopeOf(objective, "logprob", at, inputs),
        );
      }),
    );
    // Weights 1, min(4, 2) and 0.5; the fourth token is an observation.
    const { metrics, loss } = evaluateObjective(corrected, {
      count: 4,
      quantities: { logprob: [-2, -2, -2, -9] },
      inputs: {
        oldLogprob: [-2, -2, -2, 0],
        samplerLogprob: [-2, -2 - 2 * Math.LN2, -2 + Math.LN2, 0],
        advantage: [1, 1, -1, 0],
        policyWeight: [0.25, 0.25, 0.25, 0],
      },
    });
    expect(loss).toBeCloseTo(0.25 * (-1 - 2 + 0.5), 12);
    const means = meanMetrics(metrics);
    expect(means["policy.importance"]).toBeCloseTo(3.5 / 3, 12);
    expect(means["policy.truncated"]).toBeCloseTo(1 / 3, 12);
    const far = { oldLogprob: -1e-9, samplerLogprob: -5000, advantage: 1, policyWeight: 1 };
    for (const expr of expressionsOf(corrected))
      expect(evaluate(expr, { logprob: -1 }, far)).toSatisfy(Number.isFinite);
  });

  it("stays finite at any distance from the old policy", () => {
    for (const [l, old] of [
      [-1e-9, -5000],
      [-5000, -1e-9],
    ] as const) {
      for (const a of [-1, 0, 1]) {
        const inputs = { oldLogprob: old, advantage: a, policyWeight: 1 };
        for (const expr of expressionsOf(objective))
          expect(evaluate(expr, { logprob: l }, inputs)).toSatisfy(Number.isFinite);
        expect(slopeOf(objective, "logprob", { logprob: l }, inputs)).toSatisfy(Number.isFinite);
      }
    }
  });
});

describe("klObjective", () => {
  const objective = klObjective(0.01);

  const at = (difference: number) => {
    const [l, inputs] = [-3, { referenceLogprob: -3 + difference, policyWeight: 2 }];
    return {
      loss: lossOf(objective, { logprob: l }, inputs),
      slope: slopeOf(objective, "logprob", { logprob: l }, inputs),
      kl: evaluate(objective.metrics["policy.kl"]!, { logprob: l }, inputs),
    };
  };

  it("is β·k3, never negative, with slope β(1 − exp(r − l)) inside the clamps", () => {
    fc.assert(
      fc.property(anyLogprob, anyLogprob, (l, r) => {
        const inputs = { referenceLogprob: r, policyWeight: 2 };
        const k3 = Math.exp(r - l) - (r - l) - 1;
        const loss = lossOf(objective, { logprob: l }, inputs);
        expectClose(loss, 0.02 * Math.min(k3, 10));
        expect(loss).toBeGreaterThanOrEqual(-1e-12);
        const slope = k3 > 10 ? 0 : 0.02 * (1 - Math.exp(r - l));
        expectClose(slopeOf(objective, "logprob", { logprob: l }, inputs), slope);
      }),
    );
  });

  it("has a loss of 10 and no gradient if the estimate would be larger", () => {
    // exp(d) − d − 1 = 10 at d = 2.6107… and at d = −10.99998…
    for (const [inside, outside] of [
      [2.61, 2.612],
      [-10.99, -11.01],
    ] as const) {
      const k3 = Math.exp(inside) - inside - 1;
      expect(k3).toBeGreaterThan(9.98);
      expectClose(at(inside).loss, 0.02 * k3);
      expectClose(at(inside).kl, k3);
      expectClose(at(inside).slope, 0.02 * (1 - Math.exp(inside)));
      expect(at(outside)).toEqual({ loss: 0.2, slope: 0, kl: 10 });
    }
  });

  it("clamps the difference at ±20, so that nothing overflows", () => {
    for (const difference of [-21, -19, 19, 21, 1000, -1000])
      expect(at(difference)).toEqual({ loss: 0.2, slope: 0, kl: 10 });
    // Without the clamp exp would be infinite, and its slope 0 · ∞.
    for (const expr of [objective.loss, derivative(objective.loss, "logprob")])
      expect(
        evaluate(expr, { logprob: -2000 }, { referenceLogprob: -1, policyWeight: 1 }),
      ).toSatisfy(Number.isFinite);
  });

  it("agrees with finite differences", () => {
    let judged = 0;
    fc.assert(
      fc.property(anyLogprob, fc.double({ min: -3, max: 3, noNaN: true }), (l, d) => {
        const inputs = { referenceLogprob: l + d, policyWeight: 1 };
        if (expectDifferences(objective, "logprob", { logprob: l }, inputs)) judged++;
      }),
      { numRuns: 100 },
    );
    expect(judged).toBeGreaterThan(90);
  });
});

describe("entropyObjective", () => {
  it("rewards entropy on action tokens only", () => {
    const objective = entropyObjective(0.001);
    expect(slopeOf(objective, "entropy", { entropy: 2 }, { policyWeight: 0.5 })).toBe(-0.0005);
    expect(slopeOf(objective, "entropy", { entropy: 2 }, { policyWeight: 0 })).toBe(0);
    expect(lossOf(objective, { entropy: 2 }, { policyWeight: 0.5 })).toBe(-0.001);
    expect(expectDifferences(objective, "entropy", { entropy: 2 }, { policyWeight: 1 })).toBe(true);
  });
});

describe("valueObjective", () => {
  const objective = valueObjective({ valueClip: 0.5, valueCoefficient: 2 });
  const at = (v: number, old: number, target: number) => ({
    slope: slopeOf(
      objective,
      "value",
      { value: v },
      { oldValue: old, targetReturn: target, policyWeight: 1 },
    ),
    loss: lossOf(objective, { value: v }, { oldValue: old, targetReturn: target, policyWeight: 1 }),
  });

  it("is half the squared error, without gradient beyond the clip", () => {
    expectClose(at(1.2, 1, 3).slope, 2 * (1.2 - 3));
    expectClose(at(1.2, 1, 3).loss, 1.8 ** 2);
    // Moved 1 towards the target, of which 0.5 count: the loss is that of 1.5, without gradient.
    expectClose(at(2, 1, 3).slope, 0);
    expectClose(at(2, 1, 3).loss, 1.5 ** 2);
    // Moved away from the target: full gradient.
    expectClose(at(2, 1, 0).slope, 4);
  });

  it("agrees with finite differences", () => {
    let judged = 0;
    fc.assert(
      fc.property(anyValue, anyValue, anyValue, (v, old, target) => {
        const inputs = { oldValue: old, targetReturn: target, policyWeight: 0.7 };
        if (expectDifferences(objective, "value", { value: v }, inputs)) judged++;
      }),
      { numRuns: 100 },
    );
    expect(judged).toBeGreaterThan(50);
  });
});

describe("worldObjective", () => {
  const cases: readonly [WorldOptions, (p: number) => number][] = [
    [{ loss: "ce", mask: "below", rho: 0.2 }, () => -1],
    [{ loss: "mae", mask: "below", rho: 0.2 }, (p) => -p],
    [{ loss: "cmae", mask: "below", rho: 0.2 }, (p) => (p <= 0.2 ? -p : 0)],
    [{ loss: "cmae", mask: "above", rho: 0.2 }, (p) => (p >= 0.2 ? -p : 0)],
    [{ loss: "cmae", mask: "margin", rho: 0.2 }, (p) => (p <= 0.8 ? -p : 0)],
  ];

  it.each(cases)("%j has the slope of the closed form", (options, slope) => {
    const objective = worldObjective(options);
    let judged = 0;
    fc.assert(
      fc.property(fc.double({ min: -4, max: -1e-6, noNaN: true }), anyWeight, (l, w) => {
        const inputs = { worldWeight: w };
        const p = Math.exp(l);
        expectClose(slopeOf(objective, "logprob", { logprob: l }, inputs), w * slope(p));
        const loss = options.loss === "ce" ? -l : slope(p) === 0 ? 0 : 1 - p;
        expectClose(lossOf(objective, { logprob: l }, inputs), w * loss);
        if (expectDifferences(objective, "logprob", { logprob: l }, inputs)) judged++;
      }),
      { numRuns: 100 },
    );
    expect(judged).toBeGreaterThan(80);
  });

  it("reports the clipped fraction and the mean probability of observation tokens", () => {
    const { metrics } = evaluateObjective(worldObjective(cases[2]![0]), {
      count: 4,
      quantities: { logprob: [0.1, 0.2, 0.6, 0.9].map(Math.log) },
      inputs: { worldWeight: [1, 1, 1, 0] },
    });
    const means = meanMetrics(metrics);
    expect(means["world.tokens"]).toBe(3);
    expect(means["world.p"]).toBeCloseTo(0.3, 12);
    expect(means["world.clipped"]).toBeCloseTo(1 / 3, 12);
    expect(means["world.loss"]).toBeCloseTo(0.9 + 0.8, 12);
  });
});

describe("other policy losses", () => {
  it("CISPO: every token has a gradient, of a weight that is bounded above", () => {
    const objective = policyObjective(cispo.token({ clipHigh: 0.3 }));
    fc.assert(
      fc.property(anyLogprob, anyLogprob, anyAdvantage, anyWeight, (l, old, a, w) => {
        const inputs = { oldLogprob: old, advantage: a, policyWeight: w };
        const slope = -a * w * Math.min(Math.exp(l - old), 1.3);
        expectClose(slopeOf(objective, "logprob", { logprob: l }, inputs), slope);
        expectClose(lossOf(objective, { logprob: l }, inputs), slope * l);
      }),
    );
  });

  it("GSPO: a token's slope is that of its response's ratio", () => {
    const options = { responseClipLow: 0.01, responseClipHigh: 0.02 };
    const objective = policyObjective(gspo.token(options));
    const anyRatio = fc.double({ min: -0.04, max: 0.04, noNaN: true });
    fc.assert(
      fc.property(anyLogprob, anyRatio, anyAdvantage, anyWeight, (l, moved, a, w) => {
        const own = { oldLogprob: l - 3, responseLogRatio: moved };
        const inputs = { ...own, advantage: a, policyWeight: w };
        const s = Math.exp(moved);
        const isClipped = (a > 0 && s > 1.02) || (a < 0 && s < 0.99);
        expectClose(
          slopeOf(objective, "logprob", { logprob: l }, inputs),
          isClipped ? 0 : -a * s * w,
        );
        expectClose(
          lossOf(objective, { logprob: l }, inputs),
          -w * Math.min(a * s, a * Math.min(Math.max(s, 0.99), 1.02)),
        );
      }),
    );
  });
});

describe("all together", () => {
  const all = sumObjectives(
    policyObjective(clip.token({ clipLow: 0.2, clipHigh: 0.2, dualClip: 3 })),
    klObjective(0.01),
    entropyObjective(0.001),
    valueObjective({ valueClip: 0.5, valueCoefficient: 1 }),
    worldObjective({ loss: "cmae", mask: "below", rho: 0.2 }),
  );
  const nothing = Object.fromEntries(inputsOf(...expressionsOf(all)).map((name) => [name, 0]));

  it("names the documented inputs", () => {
    expect(Object.keys(nothing)).toEqual([
      "advantage",
      "oldLogprob",
      "oldValue",
      "policyWeight",
      "referenceLogprob",
      "targetReturn",
      "worldWeight",
    ]);
    expect(quantitiesOf(...expressionsOf(all))).toHaveLength(3);
  });

  it("ignores tokens without weight, even impossible ones", () => {
    const at = { logprob: Number.NEGATIVE_INFINITY, value: 1, entropy: 1 };
    for (const expr of expressionsOf(all)) expect(evaluate(expr, at, nothing)).toBe(0);
    for (const by of ["logprob", "value", "entropy"] as const)
      expect(slopeOf(all, by, at, nothing)).toBe(0);
  });

  it("gives observation tokens the world model's gradient only, and action tokens the policy's only", () => {
    const at = { logprob: Math.log(0.1), value: 1, entropy: 1 };
    expectClose(slopeOf(all, "logprob", at, { ...nothing, worldWeight: 2 }), -0.2);
    const action = { advantage: 1, oldLogprob: at.logprob, referenceLogprob: at.logprob };
    expectClose(slopeOf(all, "logprob", at, { ...nothing, ...action, policyWeight: 0.5 }), -0.5);
  });
});

describe("gradientShare", () => {
  const options = (loss: WorldOptions["loss"]): WorldOptions => ({ loss, mask: "below", rho: 0.2 });
  const probabilities = [0.1, 0.5];
  const isNoisy = [true, false];

  it("is 1 − p for CE and p(1 − p) for MAE", () => {
    const ce = gradientShare(probabilities, isNoisy, options("ce"));
    expect(ce.noisy).toBeCloseTo(0.9 / 1.4, 12);
    expect(ce.total).toBeCloseTo(1.4, 12);
    const mae = gradientShare(probabilities, isNoisy, options("mae"));
    expect(mae.noisy).toBeCloseTo(0.09 / 0.34, 12);
    expect(mae.noisy + mae.meaningful).toBeCloseTo(1, 12);
    expect(gradientShare(probabilities, isNoisy, options("cmae")).noisy).toBe(1);
  });

  it("is 0 if there is no gradient, also for impossible tokens", () => {
    const nothing = { noisy: 0, meaningful: 0, total: 0 };
    expect(gradientShare([], [], options("ce"))).toEqual(nothing);
    expect(gradientShare([0, 1], [1, 0], options("mae"))).toEqual(nothing);
    expect(gradientShare([0, 1], [1, 0], options("ce")).noisy).toBe(1);
    expect(() => gradientShare([0.5], [], options("ce"))).toThrow(/0 entries.*each of 1 tokens/);
  });
});
