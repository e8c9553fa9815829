/** Objectives from outside at exactly their limits. */
import { expect, it } from "vitest";
import { constant } from "./expression.js";
import { OBJECTIVE_LIMITS, parseObjective } from "./expression-parse.js";

const node = constant(1);
const withMetrics = (count: number) => ({
  loss: node,
  metrics: Object.fromEntries(Array.from({ length: count }, (_, i) => [`m${i}`, node])),
});

it("takes as many metrics as the limit, and not one more", () => {
  const { metrics } = OBJECTIVE_LIMITS;
  expect(Object.keys(parseObjective(withMetrics(metrics)).metrics)).toHaveLength(metrics);
  expect(() => parseObjective(withMetrics(metrics + 1))).toThrow(/expected at most 128, found 129/);
});

it("shortens a long text in its errors", () => {
  const unknown = (length: number) => ({ loss: { op: "x".repeat(length) }, metrics: {} });
  expect(() => parseObjective(unknown(60))).toThrow(`"${"x".repeat(60)}"`);
  expect(() => parseObjective(unknown(61))).toThrow(`"${"x".repeat(60)}…"`);
});
