import { describe, expect, it } from "vitest";
import { checkGradientCap, nextGradientCap } from "./gradient-cap.js";

const measured = (policy: number, world: number) => ({
  "gradient.policy": policy,
  "gradient.world": world,
  "gradient.cosine": 0,
});

describe("the cap on the world model's gradient", () => {
  it("shortens what is longer than allowed, and leaves the rest unchanged", () => {
    expect(nextGradientCap(0.5, {}, measured(2, 4))).toEqual({ running: 2, scale: 0.25 });
    expect(nextGradientCap(0.5, {}, measured(2, 1))).toEqual({ running: 2, scale: 1 });
    expect(nextGradientCap(undefined, {}, measured(2, 4))).toEqual({});
  });

  it("remembers the policy's gradient through updates that have none", () => {
    const after = nextGradientCap(1, { running: 1 }, measured(0, 9));
    expect(after.running).toBeCloseTo(0.9, 12);
    expect(after.scale).toBeCloseTo(0.1, 12);
    expect(nextGradientCap(1, { running: 1 }, measured(3, 9)).running).toBeCloseTo(1.2, 12);
    expect(nextGradientCap(1, { running: 3 }, undefined)).toEqual({ running: 3, scale: 1 });
    expect(nextGradientCap(1, { running: 3 }, measured(Number.NaN, 6))).toEqual({
      running: 3,
      scale: 0.5,
    });
  });

  it("lets no world modelling through before there was a policy gradient", () => {
    expect(nextGradientCap(1, {}, measured(0, 2))).toEqual({ running: 0, scale: 0 });
    expect(nextGradientCap(1, {}, measured(0, 0))).toEqual({ running: 0, scale: 1 });
  });

  it("is refused unless gradients are measured at every update", () => {
    for (const every of [0, 10])
      expect(() => checkGradientCap({ paw: { gradientCap: 1 }, gradients: { every } })).toThrow(
        new RegExp(`paw\\.gradientCap.*gradients.every is ${every}; set it to 1`),
      );
    checkGradientCap({ paw: { gradientCap: 1 }, gradients: { every: 1 } });
    checkGradientCap({ paw: {}, gradients: { every: 0 } });
  });
});
