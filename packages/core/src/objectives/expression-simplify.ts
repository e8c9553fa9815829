/**
 * Simplification by the rules of 0 and 1 and by folding constants, which keeps derivatives small.
 */
import {
  type BinaryOp,
  clamp,
  constant,
  type Expr,
  input,
  select,
  type UnaryOp,
} from "./expression.js";
import { NUMERIC } from "./expression-evaluate.js";
import { type Algebra, interpret } from "./expression-interpret.js";

/** An equivalent expression, if all its parts are finite, without needless operations. */
export function simplify(expr: Expr): Expr {
  return interpret(expr, SIMPLIFYING);
}

/** Builds simplified expressions from simplified operands. */
export const SIMPLIFYING: Algebra<Expr> = {
  constant,
  input,
  quantity: (op) => ({ op }),
  unary: simplifyUnary,
  binary: simplifyBinary,
  clamp: (x, low, high) => foldConstants(clamp(x, low, high), [x, low, high], NUMERIC.clamp),
  select: simplifySelect,
};

/** Whether an expression is a constant, and equal to the value if one is given. */
export function isConstant(
  expr: Expr,
  wanted?: number,
): expr is Extract<Expr, { readonly op: "const" }> {
  return expr.op === "const" && (wanted === undefined || expr.value === wanted);
}

function simplifyUnary(op: UnaryOp, x: Expr): Expr {
  if (op === "neg" && x.op === "neg") return x.x;
  if (op === "stopGradient" && (x.op === "input" || x.op === "stopGradient")) return x;
  return foldConstants({ op, x }, [x], NUMERIC.unary[op]);
}

function simplifyBinary(op: BinaryOp, x: Expr, y: Expr): Expr {
  const plain: Expr = { op, x, y };
  const folded = foldConstants(plain, [x, y], NUMERIC.binary[op]);
  if (folded !== plain) return folded;
  switch (op) {
    case "add":
      if (isConstant(x, 0)) return y;
      if (isConstant(y, 0)) return x;
      return y.op === "neg" ? { op: "sub", x, y: y.x } : plain;
    case "sub":
      if (isConstant(x, 0)) return simplifyUnary("neg", y);
      if (isConstant(y, 0)) return x;
      return y.op === "neg" ? { op: "add", x, y: y.x } : plain;
    case "mul":
      if (isConstant(x, 0) || isConstant(y, 0)) return constant(0);
      if (isConstant(x, 1)) return y;
      if (isConstant(y, 1)) return x;
      if (isConstant(x, -1)) return simplifyUnary("neg", y);
      return isConstant(y, -1) ? simplifyUnary("neg", x) : plain;
    case "div":
      if (isConstant(y, 1)) return x;
      return isConstant(x, 0) && !isConstant(y, 0) ? constant(0) : plain;
    default:
      return plain;
  }
}

function simplifySelect(condition: Expr, x: Expr, y: Expr): Expr {
  if (isConstant(condition)) return condition.value !== 0 ? x : y;
  const same = x === y || (isConstant(x) && isConstant(y, x.value));
  return same ? x : select(condition, x, y);
}

/** The result of an operation on constants, or the operation itself if the result is not finite. */
function foldConstants(
  operation: Expr,
  operands: readonly Expr[],
  compute: (...x: readonly number[]) => number,
): Expr {
  if (!operands.every((operand) => isConstant(operand))) return operation;
  const result = compute(...operands.map((operand) => operand.value));
  return Number.isFinite(result) ? constant(result) : operation;
}
