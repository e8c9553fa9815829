import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { add, constant, type Expr, ExpressionError, exp, logprob } from "./expression.js";
import { OBJECTIVE_LIMITS, parseObjective } from "./expression-parse.js";
import { anyExpression } from "./expression-testing.js";

function messageOf(json: unknown): string {
  try {
    parseObjective(json);
  } catch (error) {
    expect(error).toBeInstanceOf(ExpressionError);
    return (error as Error).message;
  }
  throw new Error("expected the objective to be rejected");
}

const refusalOf = (loss: unknown) => messageOf({ loss, metrics: {} });

describe("parseObjective", () => {
  it("reads back its own JSON", () => {
    fc.assert(
      fc.property(anyExpression, anyExpression, (loss, metric) => {
        const objective = { loss, metrics: { metric } };
        expect(parseObjective(JSON.parse(JSON.stringify(objective)))).toEqual(objective);
      }),
    );
  });

  it("fails on arbitrary JSON only with its own error", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.jsonValue({ maxDepth: 3 }), (loss, other) => {
        expect(messageOf({ loss, metrics: {} })).toMatch(/^loss/);
        expect(messageOf({ loss: logprob, metrics: { m: other } })).toMatch(/^metrics\.m/);
        expect(messageOf({ loss: logprob, metrics: {}, extra: other })).toMatch(/"extra"/);
      }),
    );
  });

  it("names the place and what is known", () => {
    const pow = { op: "exp", x: { op: "add", x: logprob, y: { op: "pow" } } };
    expect(refusalOf(pow)).toMatch(/^loss\.x\.y: unknown op "pow"; known: const, input, .*select$/);
    expect(refusalOf({ op: "toString" })).toMatch(/unknown op "toString"/);
    expect(refusalOf({ op: "exp" })).toBe('loss: field "x" is missing; expected op, x');
    expect(refusalOf({ ...logprob, x: 1 })).toBe('loss: unexpected field "x"; expected only op');
    expect(refusalOf({ op: "exp", x: 3 })).toBe("loss.x: expected an object, found 3");
    expect(refusalOf({ op: "const", value: "1" })).toBe(
      'loss.value: expected a finite number, found "1"',
    );
    expect(refusalOf({ op: "const", value: Number.NaN })).toMatch(/found NaN/);
    expect(refusalOf({ op: "input", name: "a b" })).toMatch(/^loss\.name: expected a letter/);
    expect(messageOf({ loss: logprob })).toMatch(/^objective: field "metrics" is missing/);
    expect(messageOf(null)).toBe("objective: expected an object, found null");
    expect(messageOf({ loss: logprob, metrics: JSON.parse('{"__proto__": 1}') })).toMatch(
      /^metrics: "__proto__" is not a valid metric name/,
    );
  });

  it("limits depth, without running out of stack", () => {
    const nested = (depth: number) => {
      let expr: Expr = logprob;
      for (let i = 1; i < depth; i++) expr = exp(expr);
      return expr;
    };
    const deepest = nested(OBJECTIVE_LIMITS.depth);
    expect(parseObjective({ loss: deepest, metrics: {} }).loss).toEqual(deepest);
    expect(refusalOf(exp(deepest))).toMatch(/nested deeper than 128/);
    expect(refusalOf(nested(1_000_000))).toMatch(/nested deeper than 128/);
    const cyclic: Record<string, unknown> = { op: "exp" };
    cyclic.x = cyclic;
    expect(refusalOf(cyclic)).toMatch(/nested deeper than 128/);
  });

  it("limits the number of nodes over loss and metrics together", () => {
    let tree: Expr = constant(1);
    for (let i = 0; i < 11; i++) tree = add(tree, tree);
    expect(parseObjective({ loss: tree, metrics: {} }).loss).toEqual(tree);
    expect(messageOf({ loss: tree, metrics: { again: tree } })).toMatch(
      /^metrics\.again\..*more than 4096 nodes/,
    );
    for (let i = 0; i < 60; i++) tree = add(tree, tree);
    expect(refusalOf(tree)).toMatch(/more than 4096 nodes/);
    const metrics = Object.fromEntries(Array.from({ length: 129 }, (_, i) => [`m${i}`, logprob]));
    expect(messageOf({ loss: logprob, metrics })).toBe("metrics: expected at most 128, found 129");
  });
});
