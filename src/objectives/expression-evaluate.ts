/** Evaluates expressions to numbers: for one token, or for many at once. */
import {
  type BinaryOp,
  type Expr,
  ExpressionError,
  expressionsOf,
  type Objective,
  type Quantity,
  type UnaryOp,
} from "./expression.js";
import { type Algebra, interpret, interpretAll } from "./expression-interpret.js";

/** What an operation does to numbers; all other implementations are tested against this one. */
export const NUMERIC: {
  readonly unary: Readonly<Record<UnaryOp, (x: number) => number>>;
  readonly binary: Readonly<Record<BinaryOp, (x: number, y: number) => number>>;
  clamp(x: number, low: number, high: number): number;
  select(condition: number, x: number, y: number): number;
} = {
  unary: {
    neg: (x) => -x,
    exp: Math.exp,
    log: Math.log,
    abs: Math.abs,
    stopGradient: (x) => x,
  },
  binary: {
    add: (x, y) => x + y,
    sub: (x, y) => x - y,
    mul: (x, y) => x * y,
    div: (x, y) => x / y,
    min: (x, y) => Math.min(x, y),
    max: (x, y) => Math.max(x, y),
    less: (x, y) => (x < y ? 1 : 0),
    lessEqual: (x, y) => (x <= y ? 1 : 0),
  },
  clamp: (x, low, high) => Math.min(Math.max(x, low), high),
  select: (condition, x, y) => (condition !== 0 ? x : y),
};

/** Values by quantity; those an expression does not use may be absent. */
export type QuantityValues<T> = Readonly<Partial<Record<Quantity, T>>>;

/** The value of an expression for one token. */
export function evaluate(
  expr: Expr,
  quantities: QuantityValues<number>,
  inputs: Readonly<Record<string, number>> = {},
): number {
  return interpret<number>(expr, {
    constant: (value) => value,
    input: (name) => lookUp("input", inputs, name),
    quantity: (name) => lookUp("quantity", quantities, name),
    unary: (op, x) => NUMERIC.unary[op](x),
    binary: (op, x, y) => NUMERIC.binary[op](x, y),
    clamp: NUMERIC.clamp,
    select: NUMERIC.select,
  });
}

/** Several tokens with their quantities and inputs, all arrays of length `count`. */
export interface TokenValues {
  readonly count: number;
  readonly quantities: QuantityValues<ArrayLike<number>>;
  readonly inputs: Readonly<Record<string, ArrayLike<number>>>;
}

/** The value of each expression for each of many tokens, computed in double precision. */
export function evaluateTokens(
  expressions: readonly Expr[],
  tokens: TokenValues,
): readonly Float64Array[] {
  return interpretAll(expressions, arrayAlgebra(tokens)).map((result) =>
    typeof result === "number"
      ? new Float64Array(tokens.count).fill(result)
      : Float64Array.from(result),
  );
}

/** An objective's loss and metrics, summed over tokens. */
export function evaluateObjective(
  objective: Objective,
  tokens: TokenValues,
): { readonly loss: number; readonly metrics: Readonly<Record<string, number>> } {
  const [loss, ...metrics] = evaluateTokens(expressionsOf(objective), tokens).map(sum);
  const names = Object.keys(objective.metrics);
  return {
    loss: loss!,
    metrics: Object.fromEntries(names.map((name, i) => [name, metrics[i]!])),
  };
}

/** A number stands for a constant array, so that no array is allocated for it. */
type Column = number | ArrayLike<number>;

function arrayAlgebra({ count, quantities, inputs }: TokenValues): Algebra<Column> {
  const at = (column: Column, i: number) => (typeof column === "number" ? column : column[i]!);
  const map = (compute: (i: number) => number, ...operands: readonly Column[]): Column => {
    if (operands.every((operand) => typeof operand === "number")) return compute(0);
    const result = new Float64Array(count);
    for (let i = 0; i < count; i++) result[i] = compute(i);
    return result;
  };
  const column = (kind: string, values: object, name: string): ArrayLike<number> => {
    const array = lookUp<ArrayLike<number>>(kind, values, name);
    if (array.length !== count)
      throw new ExpressionError(
        `${kind} ${JSON.stringify(name)} has ${array.length} entries; expected one for each of ${count} tokens`,
      );
    return array;
  };
  return {
    constant: (value) => value,
    input: (name) => column("input", inputs, name),
    quantity: (name) => column("quantity", quantities, name),
    unary: (op, x) => {
      const compute = NUMERIC.unary[op];
      return map((i) => compute(at(x, i)), x);
    },
    binary: (op, x, y) => {
      const compute = NUMERIC.binary[op];
      return map((i) => compute(at(x, i), at(y, i)), x, y);
    },
    clamp: (x, low, high) =>
      map((i) => NUMERIC.clamp(at(x, i), at(low, i), at(high, i)), x, low, high),
    select: (condition, x, y) =>
      map((i) => NUMERIC.select(at(condition, i), at(x, i), at(y, i)), condition, x, y),
  };
}

function lookUp<T>(kind: string, values: object, name: string): T {
  const value = Object.hasOwn(values, name)
    ? (values as Readonly<Record<string, T | undefined>>)[name]
    : undefined;
  if (value === undefined)
    throw new ExpressionError(
      `the expression uses ${kind} ${JSON.stringify(name)}, which was not given; given: ${
        Object.keys(values).join(", ") || "none"
      }`,
    );
  return value;
}

function sum(values: Float64Array): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
