/**
 * Symbolic derivatives of expressions, computed in one forward walk.
 *
 * At kinks the derivative is that of PyTorch's autograd, because our GPU server runs on it:
 * - min and max of equal operands: the mean of both derivatives;
 * - abs at 0: 0;
 * - comparisons and the condition of select: no derivative; select: that of the branch taken;
 * - clamp at a bound: the derivative of x (bounds count as inside); beyond a bound: of that bound.
 *   Versions of torch.clamp disagree at the bounds, so a server should write
 *   where(high < maximum(x, low), high, where(x < low, low, x)).
 * The two differ only where a slope is infinite. The value of a branch not taken never matters
 * here, while autograd makes NaN of 0 · ∞ (`select(less(0, x), log(x), 0)` at x = 0); conversely an
 * infinite slope applied to a branch not taken gives NaN here (`log(max(x, 0))` below 0).
 */
import { type BinaryOp, constant, type Expr, type Quantity, type UnaryOp } from "./expression.js";
import { type Algebra, interpret } from "./expression-interpret.js";
import { isConstant, SIMPLIFYING } from "./expression-simplify.js";

/** The derivative of an expression by one quantity of the model, simplified. */
export function derivative(expr: Expr, quantity: Quantity): Expr {
  return interpret(expr, tangentAlgebra(quantity)).tangent;
}

/** An expression with its derivative. */
interface Dual {
  readonly value: Expr;
  readonly tangent: Expr;
}

const ZERO = constant(0);
const HALF = constant(0.5);

const binary = (op: BinaryOp) => (x: Expr, y: Expr) => SIMPLIFYING.binary(op, x, y);
const add = binary("add");
const sub = binary("sub");
const mul = binary("mul");
const div = binary("div");
const max = binary("max");
const less = binary("less");
const neg = (x: Expr) => SIMPLIFYING.unary("neg", x);
const { select } = SIMPLIFYING;

function tangentAlgebra(quantity: Quantity): Algebra<Dual> {
  const still = (value: Expr): Dual => ({ value, tangent: ZERO });
  return {
    constant: (value) => still(constant(value)),
    input: (name) => still(SIMPLIFYING.input(name)),
    quantity: (op) => ({ value: { op }, tangent: constant(op === quantity ? 1 : 0) }),
    unary: (op, x) => {
      const value = SIMPLIFYING.unary(op, x.value);
      return isStill(x) ? still(value) : { value, tangent: unaryTangent(op, x, value) };
    },
    binary: (op, x, y) => {
      const value = SIMPLIFYING.binary(op, x.value, y.value);
      return isStill(x) && isStill(y)
        ? still(value)
        : { value, tangent: binaryTangent(op, x, y, value) };
    },
    clamp: (x, low, high) => {
      const value = SIMPLIFYING.clamp(x.value, low.value, high.value);
      return [x, low, high].every(isStill)
        ? still(value)
        : { value, tangent: clampTangent(x, low, high) };
    },
    select: (condition, x, y) => ({
      value: select(condition.value, x.value, y.value),
      tangent: select(condition.value, x.tangent, y.tangent),
    }),
  };
}

function isStill(x: Dual): boolean {
  return isConstant(x.tangent, 0);
}

function unaryTangent(op: UnaryOp, x: Dual, value: Expr): Expr {
  switch (op) {
    case "neg":
      return neg(x.tangent);
    case "exp":
      return mul(value, x.tangent);
    case "log":
      return div(x.tangent, x.value);
    case "abs":
      return select(
        less(x.value, ZERO),
        neg(x.tangent),
        select(less(ZERO, x.value), x.tangent, ZERO),
      );
    case "stopGradient":
      return ZERO;
  }
}

function binaryTangent(op: BinaryOp, x: Dual, y: Dual, value: Expr): Expr {
  switch (op) {
    case "add":
      return add(x.tangent, y.tangent);
    case "sub":
      return sub(x.tangent, y.tangent);
    case "mul":
      return add(mul(x.tangent, y.value), mul(x.value, y.tangent));
    case "div":
      return div(sub(x.tangent, mul(value, y.tangent)), y.value);
    case "min":
      return extremeTangent(x, y, less(x.value, y.value), less(y.value, x.value));
    case "max":
      return extremeTangent(x, y, less(y.value, x.value), less(x.value, y.value));
    case "less":
    case "lessEqual":
      return ZERO;
  }
}

function extremeTangent(x: Dual, y: Dual, xWins: Expr, yWins: Expr): Expr {
  const tie = mul(HALF, add(x.tangent, y.tangent));
  return select(xWins, x.tangent, select(yWins, y.tangent, tie));
}

function clampTangent(x: Dual, low: Dual, high: Dual): Expr {
  // If low and high cross, clamp gives high, so the upper bound is checked first, against max(x,
  // low).
  const raised = isStill(low) && isStill(high) ? x.value : max(x.value, low.value);
  return select(
    less(high.value, raised),
    high.tangent,
    select(less(x.value, low.value), low.tangent, x.tangent),
  );
}
