import { dose } from "@pawl/core/dose-testing.js";
import {
  type Expr,
  type Objective,
  QUANTITIES,
  type Quantity,
} from "@pawl/core/objectives/expression.js";
import { derivative } from "@pawl/core/objectives/expression-derivative.js";
import { evaluate, NUMERIC } from "@pawl/core/objectives/expression-evaluate.js";
import { interpret, quantitiesOf } from "@pawl/core/objectives/expression-interpret.js";
import { anyExpression, anyToken } from "@pawl/core/objectives/expression-testing.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Tensor } from "./graph.js";
import { runGraph, type TestInput } from "./graph-testing.js";
import { compileObjective } from "./objective-graph.js";

type Token = typeof anyToken extends fc.Arbitrary<infer T> ? T : never;

/** The value in single precision, computed in the same order as the graph. */
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

/** The results of a compiled objective: loss, a metric equal to it, and the three derivatives. */
async function compiled(expr: Expr, tokens: readonly Token[]) {
  const objective: Objective = { loss: expr, metrics: { same: expr } };
  const names = ["a", "b"] as const;
  return runGraph(
    [
      ...QUANTITIES.map((name) => column(tokens.map((token) => token.quantities[name]))),
      ...names.map((name) => column(tokens.map((token) => token.inputs[name]))),
    ],
    (_, tensors) => {
      const result = compileObjective(
        objective,
        Object.fromEntries(QUANTITIES.map((name, i) => [name, tensors[i]!])) as Record<
          Quantity,
          Tensor
        >,
        new Map(names.map((name, i) => [name, tensors[QUANTITIES.length + i]!])),
      );
      // The derivative with respect to an unused quantity is zero and is not computed.
      const seeds = QUANTITIES.map((name) => result.seeds.get(name));
      return [result.loss, ...result.metrics, ...seeds.filter((seed) => seed !== undefined)];
    },
  );
}

describe("compiled objectives", () => {
  it("have the same values and derivatives as interpreted expressions", async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(
        anyExpression,
        fc.array(anyToken, { minLength: 3, maxLength: 3 }),
        async (expr, tokens) => {
          const results = await compiled(expr, tokens);
          const used = quantitiesOf(expr);
          const expressions = [expr, expr, ...used.map((name) => derivative(expr, name))];
          expect(results.length).toBe(expressions.length);
          for (const [i, expression] of expressions.entries())
            tokens.forEach((token, t) => {
              const exact = evaluate(expression, token.quantities, token.inputs);
              const single = evaluateSingle(expression, token);
              // If single precision itself breaks down, nothing can be compared.
              if (!(Math.abs(single - exact) <= 1e-5 * (1 + Math.abs(exact)))) return;
              compared += 1;
              const error = Math.abs(results[i]![t]! - exact) / (1 + Math.abs(exact));
              expect(error).toBeLessThan(1e-4);
            });
        },
      ),
      { numRuns: dose(150), seed: 5 },
    );
    expect(compared).toBeGreaterThan(dose(500));
  });

  it("are columns, even if an expression is a plain number or an input", async () => {
    const token = { quantities: { logprob: -1, value: 0, entropy: 0 }, inputs: { a: 3, b: 0 } };
    const number: Expr = { op: "const", value: 2 };
    expect(await compiled(number, [token, token])).toEqual([
      Float32Array.of(2, 2),
      Float32Array.of(2, 2),
    ]);
    expect(await compiled({ op: "input", name: "a" }, [token, token])).toEqual([
      Float32Array.of(3, 3),
      Float32Array.of(3, 3),
    ]);
    expect(await compiled({ op: "logprob" }, [token, token])).toEqual([
      Float32Array.of(-1, -1),
      Float32Array.of(-1, -1),
      Float32Array.of(1, 1),
    ]);
  });
});
