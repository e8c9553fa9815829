/** The one walk over expressions that evaluation, differentiation and compilation are built on. */
import {
  type BinaryOp,
  type Expr,
  OPERANDS,
  QUANTITIES,
  type Quantity,
  type UnaryOp,
} from "./expression.js";

/**
 * The meaning of each operation, with results of type T: numbers, arrays, graph nodes, expressions.
 */
export interface Algebra<T> {
  constant(value: number): T;
  input(name: string): T;
  quantity(name: Quantity): T;
  unary(op: UnaryOp, x: T): T;
  binary(op: BinaryOp, x: T, y: T): T;
  clamp(x: T, low: T, high: T): T;
  select(condition: T, x: T, y: T): T;
}

/**
 * Folds several expressions with an algebra, calling it once for each distinct sub-expression.
 *
 * Sub-expressions with the same structure are the same, so `exp(logprob - old)` written five times,
 * or in the loss and again in a metric, is computed once. The walk keeps its own stack, so depth
 * cannot overflow the call stack.
 */
export function interpretAll<T>(expressions: readonly Expr[], algebra: Algebra<T>): readonly T[] {
  const results: T[] = [];
  const indexOfKey = new Map<string, number>();
  const indexOfNode = new Map<Expr, number>();
  const stack: Expr[] = [...expressions].reverse();
  while (stack.length > 0) {
    const expr = stack.at(-1)!;
    if (indexOfNode.has(expr)) {
      stack.pop();
      continue;
    }
    const operands = operandsOf(expr);
    const missing = operands.filter((operand) => !indexOfNode.has(operand));
    if (missing.length > 0) {
      stack.push(...missing.reverse());
      continue;
    }
    stack.pop();
    const operandIndices = operands.map((operand) => indexOfNode.get(operand)!);
    const key = keyOf(expr, operandIndices);
    let index = indexOfKey.get(key);
    if (index === undefined) {
      index = results.length;
      results.push(
        apply(
          expr,
          operandIndices.map((i) => results[i]!),
          algebra,
        ),
      );
      indexOfKey.set(key, index);
    }
    indexOfNode.set(expr, index);
  }
  return expressions.map((expr) => results[indexOfNode.get(expr)!]!);
}

/** Folds one expression with an algebra, calling it once for each distinct sub-expression. */
export function interpret<T>(expr: Expr, algebra: Algebra<T>): T {
  return interpretAll([expr], algebra)[0]!;
}

function operandsOf(expr: Expr): readonly Expr[] {
  const fields = expr as unknown as Readonly<Record<string, Expr>>;
  return OPERANDS[expr.op].map((field) => fields[field]!);
}

function keyOf(expr: Expr, operandIndices: readonly number[]): string {
  if (expr.op === "const") return `const ${expr.value}`;
  if (expr.op === "input") return `input ${expr.name}`;
  return `${expr.op} ${operandIndices.join(" ")}`;
}

function apply<T>(expr: Expr, operands: readonly T[], algebra: Algebra<T>): T {
  const [a, b, c] = operands as readonly [T, T, T];
  switch (expr.op) {
    case "const":
      return algebra.constant(expr.value);
    case "input":
      return algebra.input(expr.name);
    case "logprob":
    case "value":
    case "entropy":
      return algebra.quantity(expr.op);
    case "neg":
    case "exp":
    case "log":
    case "abs":
    case "stopGradient":
      return algebra.unary(expr.op, a);
    case "clamp":
      return algebra.clamp(a, b, c);
    case "select":
      return algebra.select(a, b, c);
    default:
      return algebra.binary(expr.op, a, b);
  }
}

/** The model's quantities that the expressions use, in the order of `QUANTITIES`. */
export function quantitiesOf(...expressions: readonly Expr[]): readonly Quantity[] {
  const used = new Set([...nodesOf(expressions)].map(({ op }) => op));
  return QUANTITIES.filter((quantity) => used.has(quantity));
}

/** The names of the inputs that the expressions use, sorted. */
export function inputsOf(...expressions: readonly Expr[]): readonly string[] {
  const nodes = [...nodesOf(expressions)];
  const names = nodes.flatMap((node) => (node.op === "input" ? [node.name] : []));
  return [...new Set(names)].sort();
}

/** Every expression and sub-expression. */
function nodesOf(expressions: readonly Expr[]): ReadonlySet<Expr> {
  const nodes = new Set(expressions);
  // A set's walk reaches what is added meanwhile.
  for (const node of nodes) for (const operand of operandsOf(node)) nodes.add(operand);
  return nodes;
}
