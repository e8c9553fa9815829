import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dose } from "../dose-testing.js";
import {
  abs,
  add,
  clamp,
  constant,
  div,
  type Expr,
  ExpressionError,
  entropy,
  exp,
  input,
  less,
  lessEqual,
  log,
  logprob,
  max,
  min,
  mul,
  neg,
  QUANTITIES,
  type Quantity,
  select,
  stopGradient,
  sub,
  sumObjectives,
  value,
} from "./expression.js";
import { derivative } from "./expression-derivative.js";
import { evaluate, evaluateObjective, evaluateTokens, NUMERIC } from "./expression-evaluate.js";
import { inputsOf, interpret, interpretAll, quantitiesOf } from "./expression-interpret.js";
import { simplify } from "./expression-simplify.js";
import { anyExpression, anyToken } from "./expression-testing.js";

type Token = typeof anyToken extends fc.Arbitrary<infer T> ? T : never;

/** Evaluates while noting which way each kink went, and replays what stopGradient saw elsewhere. */
function trace(expr: Expr, token: Token, stopped?: readonly number[]) {
  const branches: string[] = [];
  const stops: number[] = [];
  let largest = 0;
  const note = (result: number) => {
    largest = Math.max(largest, Number.isNaN(result) ? Number.POSITIVE_INFINITY : Math.abs(result));
    return result;
  };
  const result = interpret<number>(expr, {
    constant: (x) => x,
    input: (name) => token.inputs[name as keyof Token["inputs"]],
    quantity: (name) => token.quantities[name],
    unary: (op, x) => {
      if (op === "abs") branches.push(`${Math.sign(x)}`);
      if (op === "stopGradient") {
        stops.push(stopped?.[stops.length] ?? x);
        return stops.at(-1)!;
      }
      return note(NUMERIC.unary[op](x));
    },
    binary: (op, x, y) => {
      if (["min", "max", "less", "lessEqual"].includes(op)) branches.push(`${Math.sign(x - y)}`);
      return note(NUMERIC.binary[op](x, y));
    },
    clamp: (x, low, high) => {
      branches.push([x - low, x - high, low - high].map(Math.sign).join());
      return note(NUMERIC.clamp(x, low, high));
    },
    select: (condition, x, y) => {
      branches.push(condition === 0 ? "y" : "x");
      return note(NUMERIC.select(condition, x, y));
    },
  });
  return { result, branches: branches.join(" "), stops, largest };
}

/** How often an algebra is called when an expression is interpreted. */
function countCalls(...expressions: readonly Expr[]): number {
  let calls = 0;
  const one = () => {
    calls += 1;
    return calls;
  };
  interpretAll<number>(expressions, {
    constant: one,
    input: one,
    quantity: one,
    unary: one,
    binary: one,
    clamp: one,
    select: one,
  });
  return calls;
}

function chain(depth: number, step: (x: Expr) => Expr): Expr {
  let expr: Expr = logprob;
  for (let i = 0; i < depth; i++) expr = step(expr);
  return expr;
}

describe("builders", () => {
  it("make the JSON form, with numbers as constants", () => {
    expect(select(less(logprob, 2), input("advantage"), clamp(value, -1, 1))).toEqual({
      op: "select",
      condition: { op: "less", x: { op: "logprob" }, y: { op: "const", value: 2 } },
      x: { op: "input", name: "advantage" },
      y: {
        op: "clamp",
        x: { op: "value" },
        low: { op: "const", value: -1 },
        high: { op: "const", value: 1 },
      },
    });
    expect(evaluate(add(1, 2, 3, mul(2, 3, 4)), {})).toBe(30);
    expect(evaluate(sub(max(1, 5, 3), min(4, 2, 3)), {})).toBe(3);
  });

  it("reject constants that JSON cannot hold, and bad names", () => {
    expect(() => mul(Number.POSITIVE_INFINITY, logprob)).toThrow(/finite number, but it is Inf/);
    expect(() => constant(Number.NaN)).toThrow(ExpressionError);
    expect(() => input("__proto__")).toThrow(/input's name must be/);
    expect(Object.is((constant(-0) as { value: number }).value, 0)).toBe(true);
  });
});

describe("sumObjectives", () => {
  const a = { loss: neg(logprob), metrics: { tokens: constant(1) } };
  const b = { loss: mul(input("weight"), entropy), metrics: { entropy } };
  const tokens = {
    count: 2,
    quantities: { logprob: [-1, -2], entropy: [3, 4] },
    inputs: { weight: [10, 100] },
  };

  it("adds losses and joins metrics", () => {
    const { loss, metrics } = evaluateObjective(sumObjectives(a, b), tokens);
    expect(loss).toBe(1 + 2 + 30 + 400);
    expect(metrics).toEqual({ tokens: 2, entropy: 7 });
  });

  it("of nothing is nothing", () => {
    expect(evaluateObjective(sumObjectives(), tokens)).toEqual({ loss: 0, metrics: {} });
  });

  it("rejects two metrics with the same name", () => {
    expect(() => sumObjectives(a, a)).toThrow(/metric "tokens"; rename one/);
  });
});

describe("interpret", () => {
  it("computes equal sub-expressions once, within and across expressions", () => {
    const ratio = () => exp(sub(logprob, input("old")));
    expect(countCalls(ratio())).toBe(4);
    expect(countCalls(mul(ratio(), ratio()))).toBe(5);
    expect(countCalls(mul(ratio(), ratio()), neg(ratio()), ratio())).toBe(6);
    expect(countCalls(add(sub(logprob, 1), sub(1, logprob)))).toBe(5);
    expect(countCalls(add(input("a"), input("b"), 1, 1))).toBe(6);
  });

  it("calls the algebra once for each distinct sub-expression", () => {
    fc.assert(
      fc.property(anyExpression, (expr) => {
        const distinct = new Set<string>();
        JSON.stringify(expr, (_, node) => {
          if (typeof node === "object") distinct.add(JSON.stringify(node));
          return node;
        });
        expect(countCalls(expr, structuredClone(expr))).toBe(distinct.size);
      }),
    );
  });

  it("takes linear time on expressions that share their parts", () => {
    const doubled = chain(200, (x) => add(x, x));
    expect(countCalls(doubled)).toBe(201);
    expect(
      evaluate(
        chain(50, (x) => add(x, x)),
        { logprob: 1 },
      ),
    ).toBe(2 ** 50);
  });

  it("needs no call stack for depth", () => {
    const deep = chain(30_000, (x) => add(mul(x, 1), 0.5));
    expect(evaluate(deep, { logprob: 0 })).toBe(15_000);
    expect(derivative(deep, "logprob")).toEqual(constant(1));
    expect(quantitiesOf(simplify(deep))).toEqual(["logprob"]);
  });

  it("finds the quantities and inputs in use", () => {
    const loss = select(less(value, input("old")), entropy, mul(input("advantage"), input("old")));
    expect(quantitiesOf(loss)).toEqual(["value", "entropy"]);
    expect(inputsOf(loss, input("mask"))).toEqual(["advantage", "mask", "old"]);
    expect(quantitiesOf(constant(1))).toEqual([]);
  });
});

describe("evaluate", () => {
  it("names what is missing", () => {
    expect(() => evaluate(input("old"), {}, { advantage: 1, mask: 1 })).toThrow(
      /input "old", which was not given; given: advantage, mask/,
    );
    expect(() => evaluate(value, { logprob: 1 })).toThrow(/quantity "value"/);
    expect(() => evaluate(input("constructor"), {}, {})).toThrow(/given: none/);
  });

  it("of many tokens equals one at a time", () => {
    fc.assert(
      fc.property(anyExpression, fc.array(anyToken, { maxLength: 5 }), (expr, tokens) => {
        const column = (pick: (token: (typeof tokens)[number]) => number) =>
          Float64Array.from(tokens, pick);
        const [many] = evaluateTokens([expr], {
          count: tokens.length,
          quantities: {
            logprob: column((t) => t.quantities.logprob),
            value: column((t) => t.quantities.value),
            entropy: column((t) => t.quantities.entropy),
          },
          inputs: { a: column((t) => t.inputs.a), b: column((t) => t.inputs.b) },
        });
        const single = tokens.map((token) => evaluate(expr, token.quantities, token.inputs));
        expect(many).toEqual(Float64Array.from(single));
      }),
    );
  });

  it("returns new arrays, and rejects arrays of another length", () => {
    const quantities = { logprob: Float64Array.of(-1, -2) };
    const [copy, two] = evaluateTokens([logprob, constant(2)], {
      count: 2,
      quantities,
      inputs: {},
    });
    copy![0] = 7;
    expect(quantities.logprob[0]).toBe(-1);
    expect(two).toEqual(Float64Array.of(2, 2));
    expect(() => evaluateTokens([logprob], { count: 3, quantities, inputs: {} })).toThrow(
      /quantity "logprob" has 2 entries; expected one for each of 3 tokens/,
    );
  });
});

describe("simplify", () => {
  it("preserves the value if all parts are finite", () => {
    fc.assert(
      fc.property(anyExpression, anyToken, (expr, token) => {
        const original = trace(expr, token);
        fc.pre(Number.isFinite(original.largest));
        const simplified = evaluate(simplify(expr), token.quantities, token.inputs);
        expect(simplified).toBeCloseTo(original.result, 12);
      }),
      { numRuns: dose(500) },
    );
  });

  it("never makes an expression larger, and drops what has no effect", () => {
    fc.assert(
      fc.property(anyExpression, (expr) => {
        expect(countCalls(simplify(expr))).toBeLessThanOrEqual(countCalls(expr));
      }),
    );
    expect(simplify(add(mul(0, exp(logprob)), mul(1, sub(logprob, 0))))).toEqual(logprob);
    expect(simplify(mul(-1, neg(logprob)))).toEqual(logprob);
    expect(simplify(select(less(1, 2), logprob, value))).toEqual(logprob);
  });

  it("does not fold into numbers that JSON cannot hold", () => {
    expect(simplify(div(1, 0))).toEqual(div(1, 0));
    expect(simplify(exp(1000))).toEqual(exp(1000));
    expect(simplify(div(0, 0))).toEqual(div(0, 0));
  });
});

describe("derivative", () => {
  it("agrees with finite differences away from kinks", () => {
    let judged = 0;
    const check = (expr: Expr, token: Token, quantity: Quantity) => {
      const here = trace(expr, token);
      if (!(here.largest < 50)) return;
      const at = (offset: number) => {
        const moved = { [quantity]: token.quantities[quantity] + offset };
        const quantities = { ...token.quantities, ...moved };
        return trace(expr, { ...token, quantities }, here.stops);
      };
      const difference = (h: number) => (at(h).result - at(-h).result) / (2 * h);
      const step = 1e-4;
      const [coarse, fine] = [difference(2 * step), difference(step)];
      const smooth =
        at(2 * step).branches === here.branches && at(-2 * step).branches === here.branches;
      // If two step sizes disagree, finite differences cannot be trusted here.
      if (!smooth || !(Math.abs(coarse - fine) < 1e-6 * (1 + Math.abs(fine)))) return;
      if (fine !== 0) judged += 1;
      const exact = evaluate(derivative(expr, quantity), token.quantities, token.inputs);
      expect(Math.abs(exact - fine)).toBeLessThan(3e-6 * (1 + Math.abs(fine)));
    };
    fc.assert(
      fc.property(anyExpression, anyToken, (expr, token) => {
        for (const quantity of QUANTITIES) check(expr, token, quantity);
      }),
      { numRuns: dose(3000) },
    );
    expect(judged).toBeGreaterThan(dose(300, 40));
  });

  const slope = (expr: Expr, at: number) =>
    evaluate(derivative(expr, "logprob"), { logprob: at }, { a: 1, b: 3 });

  it("follows its conventions at kinks", () => {
    expect(slope(min(mul(2, logprob), mul(4, logprob)), 0)).toBe(3);
    expect(slope(max(mul(2, logprob), 0), 0)).toBe(1);
    expect(slope(max(logprob, logprob), 5)).toBe(1);
    expect([-1, 0, 1].map((x) => slope(abs(logprob), x))).toEqual([-1, 0, 1]);
    expect([0, 1, 2, 3, 4].map((x) => slope(clamp(logprob, 1, 3), x))).toEqual([0, 1, 1, 1, 0]);
    expect([0, 1, 2].map((x) => slope(less(logprob, 1), x))).toEqual([0, 0, 0]);
    expect(slope(select(lessEqual(logprob, 1), mul(2, logprob), mul(3, logprob)), 1)).toBe(2);
  });

  it("gives a clamp's bound its derivative where it applies", () => {
    const borders = clamp(input("a"), mul(2, logprob), mul(3, logprob));
    expect([0.1, 0.4, 1].map((x) => slope(borders, x))).toEqual([3, 0, 2]);
    // low and high crossed: high wins
    expect(slope(clamp(input("a"), mul(2, logprob), logprob), 1)).toBe(1);
    expect(slope(clamp(logprob, 3, 1), 2)).toBe(0);
  });

  it("stops at stopGradient, also when differentiated twice", () => {
    const loss = mul(stopGradient(exp(logprob)), logprob);
    expect(slope(loss, 2)).toBeCloseTo(Math.exp(2), 12);
    expect(slope(derivative(loss, "logprob"), 2)).toBe(0);
  });

  it("takes nothing from the branch that is not taken", () => {
    expect(slope(select(less(0, logprob), log(logprob), 0), 0)).toBe(0);
    expect(slope(min(logprob, div(1, sub(logprob, logprob))), 0.5)).toBe(1);
  });

  it("stays small: one or two more operations for each operation", () => {
    const ratio = exp(sub(logprob, input("old")));
    expect(derivative(ratio, "logprob")).toEqual(ratio);
    expect(derivative(neg(logprob), "logprob")).toEqual(constant(-1));
    expect(derivative(mul(input("a"), value), "value")).toEqual(input("a"));
    expect(derivative(ratio, "value")).toEqual(constant(0));
    const powers = chain(60, (x) => mul(x, add(x, 1)));
    expect(countCalls(derivative(powers, "logprob"))).toBeLessThan(60 * 8);
  });
});
