/** The losses of the papers, written in the language, against their closed forms. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  add,
  clamp,
  type Expr,
  entropy,
  exp,
  input,
  less,
  lessEqual,
  logprob,
  max,
  min,
  mul,
  neg,
  select,
  sub,
  value,
} from "./expression.js";
import { derivative } from "./expression-derivative.js";
import { evaluate } from "./expression-evaluate.js";

const advantage = input("advantage");
const ratio = exp(sub(logprob, input("old")));
const p = exp(logprob);

const anyLogprob = fc.double({ min: -12, max: 0, noNaN: true });
const anyAdvantage = fc.double({ min: -3, max: 3, noNaN: true });

function slope(loss: Expr, l: number, inputs: Record<string, number> = {}): number {
  return evaluate(derivative(loss, "logprob"), { logprob: l }, inputs);
}

function expectClose(actual: number, expected: number) {
  expect(Math.abs(actual - expected)).toBeLessThanOrEqual(1e-12 * (1 + Math.abs(expected)));
}

describe("world-model losses", () => {
  const rho = 0.2;
  const mask = lessEqual(p, rho);

  it("cross-entropy, MAE and clipped MAE have derivatives -1, -p and -m p", () => {
    fc.assert(
      fc.property(anyLogprob, (l) => {
        expect(slope(neg(logprob), l)).toBe(-1);
        expectClose(slope(sub(1, p), l), -Math.exp(l));
        expectClose(slope(mul(mask, sub(1, p)), l), Math.exp(l) <= rho ? -Math.exp(l) : 0);
      }),
    );
  });

  it("weighs by inputs", () => {
    const loss = mul(input("weight"), mask, sub(1, p));
    expectClose(slope(loss, Math.log(0.1), { weight: 0.25 }), -0.025);
    expect(slope(loss, Math.log(0.3), { weight: 0.25 })).toBeCloseTo(0, 15);
  });
});

describe("policy losses", () => {
  const clipped = neg(min(mul(ratio, advantage), mul(clamp(ratio, 0.8, 1.2), advantage)));
  const dualClipped = select(less(advantage, 0), min(clipped, mul(-3, advantage)), clipped);

  it("clipped policy gradient: -A ratio where not clipped, else 0", () => {
    fc.assert(
      fc.property(anyLogprob, anyLogprob, anyAdvantage, (l, old, a) => {
        const r = Math.exp(l - old);
        const isClipped = (a > 0 && r > 1.2) || (a < 0 && r < 0.8);
        expectClose(slope(clipped, l, { old, advantage: a }), isClipped ? 0 : -a * r);
      }),
    );
  });

  it("dual clip stops the gradient of a bad action at three times its advantage", () => {
    fc.assert(
      fc.property(anyLogprob, anyLogprob, anyAdvantage, (l, old, a) => {
        const r = Math.exp(l - old);
        const isClipped = (a > 0 && r > 1.2) || (a < 0 && (r < 0.8 || r > 3));
        expectClose(slope(dualClipped, l, { old, advantage: a }), isClipped ? 0 : -a * r);
      }),
    );
  });

  it("k3 KL: 1 - exp(r - l), within the clamp of the difference", () => {
    const difference = clamp(sub(input("reference"), logprob), -10, 10);
    const k3 = sub(sub(exp(difference), difference), 1);
    fc.assert(
      fc.property(anyLogprob, anyLogprob, (l, reference) => {
        const expected = Math.abs(reference - l) > 10 ? 0 : 1 - Math.exp(reference - l);
        expectClose(slope(k3, l, { reference }), expected);
        expect(evaluate(k3, { logprob: l }, { reference })).toBeGreaterThanOrEqual(-1e-12);
      }),
    );
  });

  it("entropy bonus and clipped value loss", () => {
    const total = add(mul(-0.001, entropy), neg(logprob));
    expect(derivative(total, "entropy")).toEqual({ op: "const", value: -0.001 });

    const near = clamp(value, sub(input("oldValue"), 0.5), add(input("oldValue"), 0.5));
    const square = (x: Expr) => mul(x, x);
    const error = (v: Expr) => square(sub(v, input("return")));
    const valueLoss = mul(0.5, max(error(value), error(near)));
    const at = (v: number, inputs: Record<string, number>) =>
      evaluate(derivative(valueLoss, "value"), { value: v }, inputs);
    expectClose(at(1.2, { oldValue: 1, return: 3 }), 1.2 - 3);
    expectClose(at(2, { oldValue: 1, return: 3 }), 0);
    expectClose(at(2, { oldValue: 1, return: 0 }), 2);
  });
});
