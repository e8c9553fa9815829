import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type GaeOptions, gae, whitener } from "./gae.js";

const response: GaeOptions = { gamma: 1, lambda: 1, scope: "response" };
const episode: GaeOptions = { gamma: 0.9, lambda: 0.5, scope: "episode" };

const anyNumber = fc.integer({ min: -50, max: 50 }).map((n) => n / 10);
const anyValues = fc.array(fc.array(anyNumber, { minLength: 1, maxLength: 4 }), { maxLength: 4 });

describe("gae", () => {
  it("inside a response with γ = λ = 1 is the score minus the value", () => {
    const { advantages, returns } = gae([10, -0.1], [[4, 6], [1]], response);
    expect(advantages).toEqual([[6, 4], [-1.1]]);
    expect(returns).toEqual([[10, 10], [-0.10000000000000009]]);
  });

  it("inside a response discounts token by token", () => {
    // δ = [0.9·6 − 4, 10 − 6] = [1.4, 4]; A = [1.4 + 0.9·0.5·4, 4].
    const { advantages } = gae([10], [[4, 6]], { ...episode, scope: "response" });
    expect(advantages[0]![0]).toBeCloseTo(3.2, 12);
    expect(advantages[0]![1]).toBe(4);
  });

  it("across turns discounts turn by turn, not token by token", () => {
    // Turn 1: one token, value 1, reward 10: A = 9.
    // Turn 0: last token: δ = 0 + 0.9·1 − 3 = −2.1, A = −2.1 + 0.45·9 = 1.95;
    //         first token: δ = 3 − 2 = 1, A = 1 + 1.95 = 2.95.
    const { advantages, returns } = gae([0, 10], [[2, 3], [1]], episode);
    expect(advantages[1]).toEqual([9]);
    expect(advantages[0]![1]).toBeCloseTo(1.95, 12);
    expect(advantages[0]![0]).toBeCloseTo(2.95, 12);
    // Within a response both tokens aim at the same return.
    expect(returns[0]![0]).toBeCloseTo(returns[0]![1]!, 12);
  });

  it("with γ = λ = 1 across turns makes every token aim at the reward still to come", () => {
    fc.assert(
      fc.property(anyValues, (values) => {
        const earned = values.map((_, t) => t + 1);
        const { returns } = gae(earned, values, { gamma: 1, lambda: 1, scope: "episode" });
        returns.forEach((tokens, t) => {
          const toCome = earned.slice(t).reduce((a, b) => a + b, 0);
          for (const target of tokens) expect(target).toBeCloseTo(toCome, 9);
        });
      }),
    );
  });

  it("with λ = 0 is the one-step error", () => {
    fc.assert(
      fc.property(anyValues, anyNumber, (values, reward) => {
        const earned = values.map(() => reward);
        const options = { gamma: 0.9, lambda: 0, scope: "response" } as const;
        gae(earned, values, options).advantages.forEach((tokens, t) => {
          tokens.forEach((a, i) => {
            const next = values[t]![i + 1];
            const delta = (next === undefined ? reward : 0.9 * next) - values[t]![i]!;
            expect(a).toBeCloseTo(delta, 9);
          });
        });
      }),
    );
  });
});

describe("whitener", () => {
  it("gives mean 0 and variance 1, keeps the order, and never yields NaN", () => {
    fc.assert(
      fc.property(fc.array(anyNumber, { minLength: 1 }), (values) => {
        const white = values.map(whitener(values));
        expect(white.every(Number.isFinite)).toBe(true);
        expect(white.reduce((a, b) => a + b, 0)).toBeCloseTo(0, 6);
        const spread = white.reduce((a, b) => a + b * b, 0) / Math.max(values.length - 1, 1);
        if (new Set(values).size > 1) expect(spread).toBeCloseTo(1, 4);
        else expect(white.every((a) => a === 0)).toBe(true);
      }),
    );
  });
});
