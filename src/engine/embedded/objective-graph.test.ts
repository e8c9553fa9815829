import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Expr, type Objective, QUANTITIES } from "../../objectives/expression.js";
import { derivative } from "../../objectives/expression-derivative.js";
import { evaluate, NUMERIC } from "../../objectives/expression-evaluate.js";
import { interpret, quantitiesOf } from "../../objectives/expression-interpret.js";
import { anyExpression, anyToken } from "../../objectives/expression-testing.js";
import { runGraph, type TestInput } from "./graph-testing.js";
import { compileObjective } from "./objective-graph.js";

type Token = typeof anyToken extends fc.Arbitrary<infer T> ? T : never;

/** The value in single precision, step by step, as the graph computes it. */
function evaluateSingle(expr: Expr, { quantities, inputs }: Token): number {
  const single = Math.fround;
  return interpret<number>(expr, {
    constant: single,
    input: (name) => single(inputs[name as "a" | "b"]),
    quantity: (name) => single(quantities[name]),
    unary: (op, x) => single(NUMERIC.unary[op](x)),
    binary: (op, x, y) => single(NUMERIC.binary[op](x, y)),
    clamp: NUMERIC.clamp,
    select: NUMERIC.select,
  });
}

function column(values: readonly number[]): TestInput {
  return { shape: [values.length, 1], data: Float32Array.from(values) };
}

/** What the compiled objective gives: loss, a metric that is the same, and the three derivatives. */
async function compiled(expr: Expr, tokens: readonly Token[], present: readonly number[]) {
  const objective: Objective = { loss: expr, metrics: { same: expr } };
  const names = ["a", "b"] as const;
  return runGraph(
    [
      ...QUANTITIES.map((name) => column(tokens.map((token) => token.quantities[name]))),
      ...names.map((name) => column(tokens.map((token) => token.inputs[name]))),
      column(present),
    ],
    (_, tensors) => {
      const result = compileObjective(
        objective,
        Object.fromEntries(QUANTITIES.map((name, i) => [name, tensors[i]!])),
        new Map(names.map((name, i) => [name, tensors[QUANTITIES.length + i]!])),
        tensors.at(-1)!,
      );
      // The derivative by a quantity that the loss does not use is zero and is not computed.
      const seeds = QUANTITIES.map((name) => result.seeds.get(name));
      return [result.loss, ...result.metrics, ...seeds.filter((seed) => seed !== undefined)];
    },
  );
}

describe("compiled objectives", () => {
  it("have the values and derivatives that expressions have as numbers", async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(
        anyExpression,
        fc.array(anyToken, { minLength: 3, maxLength: 3 }),
        async (expr, tokens) => {
          const results = await compiled(expr, tokens, [1, 1, 1]);
          const used = quantitiesOf(expr);
          const expressions = [expr, expr, ...used.map((name) => derivative(expr, name))];
          expect(results.length).toBe(expressions.length);
          for (const [i, expression] of expressions.entries())
            tokens.forEach((token, t) => {
              const exact = evaluate(expression, token.quantities, token.inputs);
              const single = evaluateSingle(expression, token);
              // Where single precision itself goes astray, nothing can be compared.
              if (!(Math.abs(single - exact) <= 1e-5 * (1 + Math.abs(exact)))) return;
              compared += 1;
              const error = Math.abs(results[i]![t]! - exact) / (1 + Math.abs(exact));
              expect(error).toBeLessThan(1e-4);
            });
        },
      ),
      { numRuns: 150, seed: 5 },
    );
    expect(compared).toBeGreaterThan(500);
  });

  it("are zero for padding, even where padding makes no sense", async () => {
    const token = { quantities: { logprob: 0, value: 0, entropy: 0 }, inputs: { a: 0, b: 0 } };
    const results = await compiled(
      { op: "log", x: { op: "logprob" } },
      [token, { ...token, quantities: { ...token.quantities, logprob: 1 } }],
      [0, 1],
    );
    expect(results.map((result) => [...result])).toEqual([
      [0, 0],
      [0, 0],
      [0, 1],
    ]);
  });
});
