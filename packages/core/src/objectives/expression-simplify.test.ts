/** Simplified expressions by their form: values alone cannot show that anything was simplified. */
import { expect, it } from "vitest";
import { add, constant, div, logprob, neg, sub, sumObjectives } from "./expression.js";
import { simplify } from "./expression-simplify.js";

it("leaves out zeros and ones, on either side", () => {
  expect(simplify(add(logprob, 0))).toEqual(logprob);
  expect(simplify(add(0, logprob))).toEqual(logprob);
  expect(simplify(sub(logprob, 0))).toEqual(logprob);
  expect(simplify(sub(0, logprob))).toEqual(neg(logprob));
  expect(simplify(div(logprob, 1))).toEqual(logprob);
  expect(simplify(div(0, logprob))).toEqual(constant(0));
});

it("a sum of objectives is sparse if one of them is, and says nothing otherwise", () => {
  const dense = { loss: logprob, metrics: {} };
  expect(sumObjectives(dense, dense)).not.toHaveProperty("sparse");
  expect(sumObjectives(dense, { ...dense, sparse: true })).toHaveProperty("sparse", true);
});
