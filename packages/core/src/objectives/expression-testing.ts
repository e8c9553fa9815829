/** Random expressions for property tests. */
import fc from "fast-check";
import {
  type BinaryOp,
  clamp,
  constant,
  type Expr,
  entropy,
  input,
  logprob,
  select,
  type UnaryOp,
  value,
} from "./expression.js";

const UNARY: readonly UnaryOp[] = ["neg", "exp", "log", "abs", "stopGradient"];
const BINARY: readonly BinaryOp[] = ["add", "sub", "mul", "div", "min", "max", "less", "lessEqual"];

// Uniform, unlike fc.double, which prefers values near 0 and other extremes.
const spread = fc.integer({ min: -3000, max: 3000 }).map((n) => n / 997);
const anyNumber = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom(-1, 0, 0.5, 1, 2) },
  { weight: 3, arbitrary: spread },
);

/** Any expression over all operations, the inputs `a` and `b` and all quantities. */
export const anyExpression: fc.Arbitrary<Expr> = fc.letrec<{ expr: Expr }>((tie) => ({
  expr: fc.oneof(
    { maxDepth: 6, depthSize: "medium" },
    fc.oneof(
      fc.constantFrom(logprob, logprob, value, entropy, input("a"), input("b")),
      anyNumber.map(constant),
    ),
    fc.record({ op: fc.constantFrom(...UNARY), x: tie("expr") }),
    fc.record({ op: fc.constantFrom(...BINARY), x: tie("expr"), y: tie("expr") }),
    fc.record({
      op: fc.constantFrom<BinaryOp>("add", "sub", "mul"),
      x: tie("expr"),
      y: tie("expr"),
    }),
    fc.tuple(tie("expr"), tie("expr"), tie("expr")).map(([x, low, high]) => clamp(x, low, high)),
    fc.tuple(tie("expr"), tie("expr"), tie("expr")).map(([c, x, y]) => select(c, x, y)),
  ),
})).expr;

/** Quantities and inputs of one token, for `anyExpression`. */
export const anyToken = fc.record({
  quantities: fc.record({ logprob: anyNumber, value: anyNumber, entropy: anyNumber }),
  inputs: fc.record({ a: anyNumber, b: anyNumber }),
});
